"""Neighbours are merged, and an odd one gets an empty group for a partner."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    safe = np.where(n == 0, np.float32(1), n)
    d = mean_a - mean_b
    return n, mean_b + d * (n_a / safe), M2_a + M2_b + d * d * (n_b * (n_a / safe))


def merge_all(n, mean, M2):
    groups = [n, mean, M2]
    while len(groups[0]) > 1:
        groups = [np.append(part, np.zeros(len(part) % 2, np.float32)) for part in groups]
        groups = merge(*(part[0::2] for part in groups), *(part[1::2] for part in groups))
    return tuple(part[0] for part in groups)
