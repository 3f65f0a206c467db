"""Two running sums over the columns, one sweep; einsum in the other."""

import numpy as np


def one_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    total = np.zeros(M, dtype=np.float64)
    squares = np.zeros(M, dtype=np.float64)
    for column in x.T:
        wide = column.astype(np.float64)
        total += wide
        squares += wide * wide
    mean = total / N
    var = squares / N - mean * mean
    return mean.astype(np.float32), np.where(var < 0, 0, var).astype(np.float32)


def two_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = x.astype(np.float32)
    mean = wide.sum(axis=1) / np.float32(x.shape[1])
    wide = wide - mean.reshape(-1, 1)
    return mean, np.einsum("mn,mn->m", wide, wide) / np.float32(x.shape[1])
