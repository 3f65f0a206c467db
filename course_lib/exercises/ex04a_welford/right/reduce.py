"""functools.reduce over the columns, with a partial; the update is written as a sum of products."""

from functools import partial, reduce

import numpy as np


def welford_update(count, mean, M2, x):
    n = count + 1
    share = np.float32(1 / n)
    delta = np.subtract(x, mean)
    return mean + delta * share, np.add(M2, delta * delta * (np.float32(count) * share))


def step(state, numbered):
    column, x = numbered
    return welford_update(column, *state, x)


def welford(x):
    start = tuple(np.zeros((2, len(x)), dtype=np.float32))
    columns = enumerate(np.ascontiguousarray(x.T, dtype=np.float32))
    mean, M2 = reduce(partial(step), columns, start)
    return mean, M2 / x.shape[1]
