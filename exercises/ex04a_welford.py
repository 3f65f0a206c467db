"""Exercise 04a: Welford's algorithm, one number at a time.

welford_update takes what is known of some numbers and one number more:

    count   how many numbers are in mean and M2 already, an int; 0 at the start
    mean    their mean
    M2      the sum of their squared deviations from their mean
    x       the next number

mean, M2 and x are fp32 arrays of shape (M,): M rows go along side by side. It returns the new (mean, M2), and leaves
the arrays that it was given as they are.

welford takes x of shape (M, N), fp16, bf16 or fp32, feeds its columns to welford_update, and returns (mean, var), fp32 of
shape (M,), var divided by N. `np.var` and `np.std`, which see all numbers at once, are refused. mean and var come
from what welford_update returns. If a row holds a NaN or an Inf, both are NaN or Inf.

Check with the panel in lesson 04, or with `course check 04a` in a terminal.
"""

import numpy as np


def welford_update(count: int, mean: np.ndarray, M2: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # YOUR CODE, about 2 lines: The new mean lies between the old one and x. How far from the old one?
    # YOUR CODE, 1 line: M2 grows. Which two deviations of x does that take?
    return new_mean, new_M2


def welford(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    x = x.astype(np.float32)
    # YOUR CODE, about 4 lines: What does each row have before its first number, and what does each column change?
    # YOUR CODE, 1 line: The variance from M2.
    return mean, var
