"""Exercise 01a: LayerNorm in PyTorch operations.

    y = (x - mean) * rstd * w + b        rstd = 1 / sqrt(var + eps)        var divided by N

x has shape (..., N): any number of leading dimensions, and each row of N elements is normalised by itself. w and b have
shape (N,). x, w and b are fp16, bf16 or fp32, not always the same. Compute in fp32 and return y in the shape and dtype of x.

Write it from sums, means and roots: PyTorch's own norms (layer_norm and its like) are refused. Leave x, w and b as they are.

Edge cases that are checked: a NaN or an Inf in a row makes all of its y NaN or Inf, and no other
row's.

Check with the panel in lesson 01, or with `course check 01a` in a terminal.
"""

import torch


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    # YOUR CODE, about 3 lines: x in fp32. The mean of each row, kept as a column so that it broadcasts, then the
    # deviations from it.
    pass
    # YOUR CODE, about 2 lines: The variance of each row (divided by N, not by N - 1), and rstd from it and eps.
    # YOUR CODE, about 2 lines: Normalise, scale, shift, and return y in x's dtype.
