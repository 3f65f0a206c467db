"""The larger side moves: fewer digits are lost."""

import numpy as np


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    swap = n_b > n_a
    n_a, n_b = np.where(swap, n_b, n_a), np.where(swap, n_a, n_b)
    mean_a, mean_b = np.where(swap, mean_b, mean_a), np.where(swap, mean_a, mean_b)
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    M2 = M2_a + M2_b + difference * difference * n_a * share
    return n, mean, M2
