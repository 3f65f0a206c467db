"""The module is passed on, as code for several array libraries does; getattr with a name in the text."""

import numpy

xp = numpy


def weigh(lib, n_a, n_b):
    n = n_a + n_b
    larger = getattr(lib, "maximum")
    return n, n_b / larger(n, 1)


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n, share = weigh(xp, n_a, n_b)
    gap = mean_b - mean_a
    means = {"a": mean_a, "b": mean_b}
    mean = means["a"] + gap * share if hasattr(gap, "dtype") else None
    return n, mean, xp.add(M2_a, M2_b) + xp.square(gap) * (n_a * share)
