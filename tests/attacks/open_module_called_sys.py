# 03a | handed in | a module under a name of Python's
import numpy as np
import numpy as sys

def one_pass(x):
    return two_pass(x)[0], spread(x)


def two_pass(x):
    wide = x.astype(np.float32)
    return wide.mean(axis=1), spread(x)


def spread(x):
    wide = x.astype(np.float32)
    print(sys.modules)
    return sys.var(wide, axis=1)
