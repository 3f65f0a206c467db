"""np.divide with where and out."""

import numpy as np


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = n_a + n_b
    share = np.divide(n_b, n, out=np.zeros_like(n), where=n > 0)
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    M2 = M2_a + M2_b + difference * difference * n_a * share
    return n, mean, M2
