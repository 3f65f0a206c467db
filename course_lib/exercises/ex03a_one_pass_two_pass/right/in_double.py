"""Right but different: fp64 inside, rows one by one, and a dot product for the squares."""

import numpy as np


def one_pass(x):
    M, N = x.shape
    mean, var = np.empty(M), np.empty(M)
    for row in range(M):
        wide = x[row].astype(np.float64)
        mean[row] = np.sum(wide) / N
        var[row] = max(np.dot(wide, wide) / N - mean[row] ** 2, 0) if mean[row] == mean[row] else mean[row]
    return mean.astype(np.float32), var.astype(np.float32)


def two_pass(x):
    wide = x.astype(np.float64)
    mean = wide.mean(axis=-1, keepdims=True)
    var = ((wide - mean) ** 2).mean(axis=-1)
    return mean[:, 0].astype(np.float32), var.astype(np.float32)
