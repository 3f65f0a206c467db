"""np.divide with where, a suppressed warning, and a helper class for a side."""

import contextlib
import warnings
from dataclasses import astuple, dataclass

import numpy as np


@dataclass(frozen=True)
class Side:
    n: "np.ndarray"
    mean: "np.ndarray"
    M2: "np.ndarray"

    def __add__(self, other: "Side") -> "Side":
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        gap = other.mean - self.mean
        return Side(n, self.mean + gap * share, self.M2 + other.M2 + gap**2 * self.n * share)


def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    with warnings.catch_warnings(), contextlib.suppress(FloatingPointError):
        warnings.simplefilter("ignore", RuntimeWarning)
        merged = Side(n_a, mean_a, M2_a) + Side(n_b, mean_b, M2_b)
    return merged.n, merged.mean, merged.M2


assert astuple(Side(1, 2, 3)) == (1, 2, 3)
