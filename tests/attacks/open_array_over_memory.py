# 03a | handed in | an array over any address, by what a class says of itself
import numpy as np
class Memory:
    __array_interface__ = {'data': (4096, False), 'shape': (8,), 'typestr': '<f4', 'version': 3}

def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    return np.asarray(Memory())
