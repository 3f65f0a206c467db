"""Right but different: M2 grows by the squared deviation times count / (count + 1)."""

import numpy as np


def welford_update(count, mean, M2, x):
    n = np.float32(count + 1)
    deviation = x - mean
    return mean + deviation / n, M2 + deviation * deviation * (np.float32(count) / n)


def welford(x):
    M, N = x.shape
    mean, M2 = np.zeros(M, dtype=np.float32), np.zeros(M, dtype=np.float32)
    for count, column in enumerate(x.T):
        mean, M2 = welford_update(count, mean, M2, column.astype(np.float32))
    return mean, M2 / np.float32(N)
