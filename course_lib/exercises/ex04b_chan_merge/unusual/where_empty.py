"""Empty merges by np.where, the mean weighted by counts in fp64."""

import numpy as np


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = n_a + n_b
    safe = np.where(n == 0, np.float32(1), n).astype(np.float64)
    share = n_b / safe
    difference = mean_b - mean_a
    mean = ((n_a * mean_a.astype(np.float64) + n_b * mean_b.astype(np.float64)) / safe).astype(np.float32)
    M2 = (M2_a + (M2_b + n_a * share * difference**2)).astype(np.float32)
    return n, mean, M2
