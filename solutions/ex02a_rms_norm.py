"""Exercise 02a: RMSNorm in PyTorch operations.

    y = x * rstd * w        rstd = 1 / sqrt(mean(x^2) + eps)

x has shape (..., N): any number of leading dimensions, and each row of N elements is normalised by itself. w has shape
(N,). x and w are fp16, bf16 or fp32, not always the same. Compute in fp32 and return y in the shape and dtype of x.

Write it from sums, means and roots: PyTorch's own norms (rms_norm and its like) are refused. Leave x and w as they are.

Edge cases that are checked: a NaN in a row makes all of its y NaN. If a row holds an Inf, y is NaN
where the Inf is, and 0 or NaN in the rest of the row.

Check with the panel in lesson 02, or with `course check 02a` in a terminal.
"""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    # BEGIN SOLUTION
    #: The mean square of each row. In which dtype, and in which shape, so that it goes with x?
    wide = x.float()
    mean_square = (wide * wide).mean(dim=-1, keepdim=True)
    # END SOLUTION
    # BEGIN SOLUTION
    #: y, in the dtype that is asked for.
    rstd = torch.rsqrt(mean_square + eps)
    return (wide * rstd * w.float()).to(x.dtype)
    # END SOLUTION
