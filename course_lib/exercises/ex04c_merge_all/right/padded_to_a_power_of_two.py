"""Empty groups fill up to a power of two; a recursion over halves of a matrix."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    difference = mean_b - mean_a
    return n, (1 - share) * mean_a + share * mean_b, M2_a + M2_b + difference**2 * (n_a * share)


def merge_all(n, mean, M2):
    K = 1
    while K < n.size:
        K *= 2
    padded = np.zeros((3, K), dtype=np.float32)
    padded[0, : n.size], padded[1, : n.size], padded[2, : n.size] = n, mean, M2
    return fold(padded)


def fold(groups):
    K = groups.shape[1]
    if K == 1:
        return groups[:, 0].copy()[0], groups[1, 0], groups[2, 0]
    return fold(np.array(merge(*groups[:, : K // 2], *groups[:, K // 2 :])))
