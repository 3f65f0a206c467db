"""M2 by the old deviation, count / (count + 1)."""

import numpy as np


def welford_update(count: int, mean: np.ndarray, M2: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    deviation = x - mean
    share = np.float32(1 / (count + 1))
    new_mean = mean + deviation * share
    new_M2 = M2 + deviation * deviation * (count * share)
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
