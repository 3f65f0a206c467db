"""Every NaN becomes an Inf: the exercise allows either."""

import numpy as np


def welford_update(count, mean, M2, x):
    new_mean = mean + (x - mean) / (count + 1)
    return new_mean, M2 + (x - mean) * (x - new_mean)


def welford(x):
    M, N = x.shape
    mean, M2 = np.zeros(M, np.float32), np.zeros(M, np.float32)
    for column in range(N):
        mean, M2 = welford_update(column, mean, M2, x[:, column].astype(np.float32))
    mean, var = (np.where(np.isnan(part), np.float32(np.inf), part) for part in (mean, M2 / N))
    return mean, var
