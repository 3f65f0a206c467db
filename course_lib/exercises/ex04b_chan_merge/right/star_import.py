"""Everything of NumPy at once."""

from numpy import *


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = divide(n_b, maximum(n, float32(1)))
    d = subtract(mean_b, mean_a)
    return n, mean_a + d * share, M2_a + M2_b + square(d) * n_a * share
