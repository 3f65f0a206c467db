"""Exercise 10c: repair the published dw.

LayerNorm's forward pass was y = xhat * w + b with xhat = (x - mean) * rstd. A set of derivation notes prints the gradient
of the weight as

    dL/dw_i = sum over a of dy_a x_i

and the function below does what they say, once for each row. It runs, returns the right shapes, and is wrong. Repair it:
`dw` and `db` are the gradients of w and b for the whole matrix.

x and dy have shape (M, N) and are fp16, bf16 or fp32; mean and rstd have shape (M,) and are fp32, saved by the forward
pass. Return dw and db, shape (N,), both in fp32 whatever comes in. Write them from sums and products, without autograd.

Check with the panel in lesson 10, or with `course check 10c` in a terminal.
"""

import torch


def dw_and_db(dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x = dy.float(), x.float()
    # BEGIN SOLUTION
    #: Two things are wrong in the formula, and the code adds a third. What multiplies w in the forward pass? In how many elements of a row's y
    #: does w[i] stand? And how many rows share it? The loop need not stay.
    #| for row in range(dy.shape[0]):
    #|     dw = dy[row].sum() * x[row]
    #|     db = dy[row]
    #| return dw, db
    xhat = (x - mean.unsqueeze(1)) * rstd.unsqueeze(1)
    dw = (dy * xhat).sum(dim=0)
    db = dy.sum(dim=0)
    return dw, db
    # END SOLUTION
