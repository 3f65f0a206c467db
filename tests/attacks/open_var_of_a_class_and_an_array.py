# 03a | handed in | np.var of an array, beside a class that has a var of its own
import numpy as np
class Statistics:
    var = 0

    def __init__(self, x):
        self.x = x

def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    statistics = Statistics(wide)
    statistics = wide
    variance = statistics.var
    return variance(axis=1)
