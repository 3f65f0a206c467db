"""Optional task 03b: one-pass on a shifted row, and the row that defeats it.

The variance of a row stays as it is if one number is subtracted from the whole row. So subtract the row's first element, and take one sweep:

    d = x - x[0]        var = E[d^2] - E[d]^2        mean = x[0] + E[d]

shifted_one_pass(x): x has shape (M, N), fp16, bf16 or fp32, and each row has its own first element. It returns (mean, var), each fp32 of shape (M,); var is
divided by N. Compute in fp32, also where a row has a large mean. Leave x as it is. A row with a NaN has a NaN for its mean
and for its variance; if a row holds an Inf, both are Inf or NaN. `np.var` and `np.std` are refused.

defeating_row(N): N is a whole number, 8 or more. It returns one row of N numbers, fp32 of shape (N,), each between -1e6 and 1e6. In this row
E[d^2] is more than N/2 times the variance, so the formula multiplies each of its roundings by more than N/2. A row of equal numbers does
not count: its variance is 0.

Check with the panel in lesson 03, or with `course check 03b` in a terminal.
"""

import numpy as np


def shifted_one_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # BEGIN SOLUTION
    #:
    x = x.astype(np.float32)
    first = x[:, :1]
    d = x - first
    mean = np.mean(d, axis=1)
    var = np.mean(d * d, axis=1) - mean * mean
    return first[:, 0] + mean, var
    # END SOLUTION


def defeating_row(N: int) -> np.ndarray:
    # BEGIN SOLUTION
    #:
    row = np.zeros(N, dtype=np.float32)
    row[0] = 1000
    return row
    # END SOLUTION
