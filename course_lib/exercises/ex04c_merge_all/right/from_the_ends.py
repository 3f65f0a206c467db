"""The first meets the last; one in the middle stays. Inside in fp64."""

import numpy as np


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    wide = [np.asarray(part, np.float64) for part in (n_a, mean_a, M2_a, n_b, mean_b, M2_b)]
    a, m, s, b, k, t = wide
    n = a + b
    some = np.maximum(n, 1)
    out = n, m + (k - m) * b / some, s + t + (k - m) ** 2 * a * b / some
    return tuple(part.astype(np.float32) for part in out)


def merge_all(n, mean, M2):
    parts = (n, mean, M2)
    while parts[0].size > 1:
        K = parts[0].size
        h = K // 2
        left, middle, right = ([part[cut] for part in parts] for cut in (slice(0, h), slice(h, K - h), slice(K - 1, K - h - 1, -1)))
        merged = merge(*left, *right)
        parts = tuple(np.concatenate(pair) for pair in zip(merged, middle, strict=True))
    count, average, squares = parts
    return float(count[0]), float(average[0]), float(squares[0])
