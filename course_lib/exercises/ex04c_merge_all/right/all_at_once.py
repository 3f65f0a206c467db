"""No tree: the mean by its weights, then the squared distances from it. That calls merge never, and is right at any mean."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    return n, mean_a + (mean_b - mean_a) * share, M2_a + M2_b + (mean_b - mean_a) ** 2 * n_a * share


def merge_all(n, mean, M2):
    total = n.sum()
    weights = n / np.maximum(total, 1)
    together = mean[0] + (weights * (mean - mean[0])).sum() if total else np.float32(0)
    return total, together, M2.sum() + (n * (mean - together) ** 2).sum()
