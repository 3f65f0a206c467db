"""A Python loop over the merges, scalars and branches."""

import numpy as np


def merge_one(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    if n_b == 0:
        return n_a, mean_a, M2_a
    if n_a == 0:
        return n_b, mean_b, M2_b
    n = n_a + n_b
    d = mean_b - mean_a
    return n, mean_a + d * (n_b / n), M2_a + M2_b + d * d * (n_a * (n_b / n))


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    merged = [merge_one(*six) for six in zip(n_a, mean_a, M2_a, n_b, mean_b, M2_b)]
    n, mean, M2 = (np.array(column, dtype=np.float32) for column in zip(*merged))
    return n, mean, M2
