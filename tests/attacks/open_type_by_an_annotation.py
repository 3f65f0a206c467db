# 03a | handed in | an annotation hands `type` to a class of its own, which finds the type of arrays, and makes objects out of numbers
import numpy as np


class Box:
    kinds = []

    def __getitem__(self, kind):
        self.kinds.append(kind)
        return float


BOX = Box()


def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x: BOX[type]):
    return BOX.kinds[0](x)((1,), dtype="O", buffer=np.full(8, 0x4141, np.int64))
