"""functools.reduce over the columns."""

import functools

import numpy as np


def welford_update(count: int, mean: np.ndarray, M2: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    deviation = x - mean
    new_mean = mean + deviation / (count + 1)
    new_M2 = M2 + deviation * (x - new_mean)
    return new_mean, new_M2


def welford(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    x = x.astype(np.float32)
    start = (np.zeros(M, np.float32), np.zeros(M, np.float32))
    mean, M2 = functools.reduce(lambda known, i: welford_update(i, *known, x[:, i]), range(N), start)
    var = M2 / N
    return mean, var
