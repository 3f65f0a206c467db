# 03a | handed in | a variance that a pattern takes out of an array
import numpy as np


def one_pass(x):
    x = x.astype(np.float32)
    m = np.mean(x, axis=1)
    return m, np.maximum(np.mean(x * x, axis=1) - m * m, 0)


def two_pass(x):
    x = x.astype(np.float32)
    match x:
        case np.ndarray(var=spread):
            v = spread(axis=1)
    return np.mean(x, axis=1), np.asarray(v, np.float32)
