"""Right but different: the mean as a weighted mean, M2 from each side's distance to it, in fp64 inside."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n_a, mean_a, M2_a, n_b, mean_b, M2_b = (part.astype(np.float64) for part in (n_a, mean_a, M2_a, n_b, mean_b, M2_b))
    n = n_a + n_b
    mean = (n_a * mean_a + n_b * mean_b) / np.maximum(n, 1)
    M2 = M2_a + n_a * (mean_a - mean) ** 2 + M2_b + n_b * (mean_b - mean) ** 2
    return n.astype(np.float32), mean.astype(np.float32), M2.astype(np.float32)
