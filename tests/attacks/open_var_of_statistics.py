# 03a | handed in | a variance of Python's statistics, by a distribution
import numpy as np
from statistics import NormalDist


def one_pass(x):
    x = x.astype(np.float32)
    m = np.mean(x, axis=1)
    return m, np.maximum(np.mean(x * x, axis=1) - m * m, 0)


def two_pass(x):
    x = x.astype(np.float32)
    n = x.shape[1]
    rows = [NormalDist.from_samples(list(map(float, row)) * 2) for row in x]
    v = [row.variance * (2 * n - 1) / (2 * n) for row in rows]
    return np.mean(x, axis=1), np.asarray(v, np.float32)
