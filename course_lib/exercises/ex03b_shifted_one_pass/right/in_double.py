"""fp64 inside, and a row whose first element is spread apart from small noise."""

import numpy as np


def shifted_one_pass(x):
    x = x.astype(np.float64)
    d = x - x[:, [0]]
    total, squares = d.sum(axis=1), (d**2).sum(axis=1)
    n = x.shape[1]
    var = (squares - total * total / n) / n
    return (x[:, 0] + total / n).astype(np.float32), var.astype(np.float32)


def defeating_row(N):
    row = np.random.default_rng(N).normal(size=N)
    row[0] = -40 * np.sqrt(N)
    return row.astype(np.float32)
