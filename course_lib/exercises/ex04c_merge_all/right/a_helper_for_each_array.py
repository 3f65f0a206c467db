"""A tree whose helpers are called once for each array of a level."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    difference = mean_b - mean_a
    return n, mean_a + difference * share, M2_a + M2_b + difference**2 * n_a * share


def fill_up(part):
    return np.append(part, np.zeros(len(part) % 2, np.float32))


def take(part, side):
    return fill_up(part)[side::2]


def merge_all(n, mean, M2):
    groups = (n, mean, M2)
    while len(groups[0]) > 1:
        left, right = ([take(part, side) for part in groups] for side in (0, 1))
        groups = merge(*left, *right)
    return tuple(part[0] for part in groups)
