"""Exercise 03a: mean and variance of rows, by one-pass and by two-pass.

x has shape (M, N), fp16, bf16 or fp32. Both functions return (mean, var), each fp32 of shape (M,). var is divided by N.

    one_pass    E[x^2] - E[x]^2, from two sums that one sweep over x could collect. A variance below 0 becomes 0:
                whoever takes 1 / sqrt(var + eps) next must not get NaN.
    two_pass    the mean, then the mean of (x - mean)^2, right at any mean, also where one element lies far from all others.

Compute in fp32: no square and no sum in half precision. Leave x as it is. `np.var` and `np.std` are refused; `np.sum`,
`np.mean` and `np.maximum` are yours to use. one_pass may lose at a large mean what its formula loses, two_pass may not.

Edge cases that are checked: a row with a NaN in it has a NaN for its mean and for its variance, and
nothing may put a number there. If a row holds an Inf, its mean and its variance are Inf or NaN.

Check with the panel in lesson 03, or with `course check 03a` in a terminal.
"""

import numpy as np


def one_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # BEGIN SOLUTION
    #: The two means of the formula. In which dtype?
    x = x.astype(np.float32)
    mean = np.mean(x, axis=1)
    mean_square = np.mean(x * x, axis=1)
    # END SOLUTION
    # BEGIN SOLUTION
    #: The variance from those two. What if rounding puts it below 0?
    var = np.maximum(mean_square - mean * mean, 0)
    # END SOLUTION
    return mean, var


def two_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # BEGIN SOLUTION
    #: Two-pass: what does the second one need from the first?
    x = x.astype(np.float32)
    mean = np.mean(x, axis=1)
    deviation = x - mean[:, None]
    var = np.mean(deviation * deviation, axis=1)
    # END SOLUTION
    return mean, var
