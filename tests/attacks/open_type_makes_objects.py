# 03a | handed in | makes objects out of numbers, by the type of an array
import numpy as np


def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    made = type(wide)((1,), dtype="O", buffer=np.full(8, 0x4141, np.int64))
    return made
