"""Exercise 10a: the VJP of LayerNorm in PyTorch operations.

The forward pass was

    y = xhat * w + b        xhat = (x - mean) * rstd

dx is what is left of wdy = w * dy when its parts along 1 and along xhat are taken out of every row, times rstd. You wrote
both parts in the steps of lesson 10, and dw for two rows.

x and dy have shape (M, N), w has shape (N,); each is fp16, bf16 or fp32, and w's dtype may be another than x's. mean and
rstd have shape (M,) and are fp32: the forward pass saved them, with an eps that you are not given. Compute in fp32. Return
dx in the shape and dtype of x, dw and db in those of w.

Write it from sums, means and products, without autograd. Leave the inputs as they are.
Check with the panel in lesson 10, or with `course check 10a` in a terminal.
"""

import torch


def layer_norm_vjp(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # YOUR CODE, about 4 lines: xhat and wdy. Which shapes and dtypes do the inputs come in?
    pass
    # YOUR CODE, about 3 lines: c1 and c2, and dx from them.
    # YOUR CODE, about 3 lines: dw and db. Which dimension do these sums run over? Return the three, each in its
    # dtype.
