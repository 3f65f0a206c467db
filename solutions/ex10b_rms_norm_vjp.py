"""Exercise 10b: the VJP of RMSNorm in PyTorch operations.

The forward pass was

    y = x * rstd * w        rstd = 1 / sqrt(mean(x^2) + eps)        mean over the N columns

x and dy have shape (M, N), w has shape (N,); each is fp16, bf16 or fp32, and w's dtype may be another than x's. rstd has
shape (M,) and is fp32: the forward pass saved it. Compute in fp32. Return dx in the shape and dtype of x, dw in those of
w. It is LayerNorm's with one part less.

Write it from sums, means and products, without autograd. Leave the inputs as they are.
Check with the panel in lesson 10, or with `course check 10b` in a terminal.
"""

import torch


def rms_norm_vjp(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    # BEGIN SOLUTION
    #: xhat from x and the saved rstd, and wdy, both in fp32.
    dy32 = dy.float()
    column = rstd.unsqueeze(1)
    xhat = x.float() * column
    wdy = dy32 * w.float()
    # END SOLUTION
    # BEGIN SOLUTION
    #: dx. Which of c1 and c2 does a norm without a mean need?
    c1 = (xhat * wdy).mean(dim=1, keepdim=True)
    dx = (wdy - xhat * c1) * column
    # END SOLUTION
    # BEGIN SOLUTION
    #: dw, and both returned, each in its dtype.
    dw = (dy32 * xhat).sum(dim=0)
    return dx.to(x.dtype), dw.to(w.dtype)
    # END SOLUTION
