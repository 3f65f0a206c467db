"""A while loop, zeros like the first column."""

import numpy as np


def welford_update(count: int, mean: np.ndarray, M2: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    deviation = x - mean
    new_mean = mean + deviation / (count + 1)
    new_M2 = M2 + deviation * (x - new_mean)
    return new_mean, new_M2


def welford(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    x = x.astype(np.float32)
    mean = M2 = np.zeros_like(x[:, 0])
    count = 0
    while count < N:
        mean, M2 = welford_update(count, mean, M2, x[:, count])
        count += 1
    var = M2 / N
    return mean, var
