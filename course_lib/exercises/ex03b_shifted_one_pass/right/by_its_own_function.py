"""One pass is a function of its own, and the row is the best of some candidates by the measure that the text gives."""

import numpy as np


def one_pass(d):
    mean = np.mean(d, axis=1)
    return mean, np.mean(d * d, axis=1) - mean * mean


def shifted_one_pass(x):
    x = x.astype(np.float32)
    first = x[:, 0].copy()
    mean, var = one_pass(x - first[:, None])
    return first + mean, var


def measure(row):
    d = row.astype(np.float64) - row[0]
    deviation = row - row.astype(np.float64).mean()
    return (d * d).mean() / (deviation * deviation).mean()


def defeating_row(N):
    candidates = []
    for place in (0, N // 2, N - 1):
        row = np.ones(N, np.float32)
        row[place] = 3
        candidates.append(row)
    return max(candidates, key=measure)
