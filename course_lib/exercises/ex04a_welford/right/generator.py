"""A generator of partial statistics, of which the last is kept."""

import collections
import typing as t

import numpy as np

Partial: t.TypeAlias = "tuple[np.ndarray, np.ndarray]"


def welford_update(count, mean, M2, x):
    new_mean = mean + (x - mean) / np.float32(count + 1)
    return new_mean, M2 + (x - mean) * (x - new_mean)


def partials(x) -> t.Iterator["Partial"]:
    mean = M2 = np.zeros(x.shape[0], np.float32)
    for column in range(x.shape[1]):
        mean, M2 = welford_update(column, mean, M2, x[:, column].astype(np.float32))
        yield mean, M2


def welford(x):
    ((mean, M2),) = collections.deque(partials(x), maxlen=1)
    return mean, np.divide(M2, x.shape[1])
