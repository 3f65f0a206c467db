"""Copies are made first, and changed in place."""

import numpy as np


def welford_update(count: int, mean: np.ndarray, M2: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    new_mean, new_M2 = mean.copy(), M2.copy()
    deviation = x - new_mean
    new_mean += deviation / np.float32(count + 1)
    new_M2 += deviation * (x - new_mean)
    return new_mean, new_M2


def welford(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    x = x.astype(np.float32)
    mean = np.zeros(M, np.float32)
    M2 = np.zeros(M, np.float32)
    for column in range(N):
        mean, M2 = welford_update(column, mean, M2, x[:, column])
    var = M2 / N
    return mean, var
