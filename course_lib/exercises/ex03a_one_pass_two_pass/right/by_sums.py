"""Right but different: sums instead of means, the sum of squares corrected by S^2 / N; two_pass corrected by its own residual."""

import numpy as np


def one_pass(x):
    wide = x.astype(np.float32)
    N = wide.shape[1]
    total = wide.sum(axis=1)
    squares = np.square(wide).sum(axis=1)
    var = (squares - total * total / N) / N
    return total / N, np.where(var < 0, np.float32(0), var)


def two_pass(x):
    wide = x.astype(np.float32)
    N = wide.shape[1]
    mean = wide.sum(axis=1) / N
    deviation = wide - mean[:, None]
    residual = deviation.sum(axis=1)
    return mean + residual / N, ((deviation**2).sum(axis=1) - residual * residual / N) / N
