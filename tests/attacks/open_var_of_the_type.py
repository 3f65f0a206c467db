# 03a | handed in | np.var, by the type of an array
import numpy as np


def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    return np.ndarray.var(wide, axis=1)
