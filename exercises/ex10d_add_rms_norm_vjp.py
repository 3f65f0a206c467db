"""Optional task 10d: the backward pass of a residual and its norm, in PyTorch operations.

The forward pass was that of 09a:

    x = a + r        y = x * rstd * w        rstd = 1 / sqrt(mean(x^2) + eps)        mean over the N columns

It handed on both: y to the next layer, and x, the sum, past that layer. So two gradients come back: dy is that of y, and dskip is that
of x on its way past the layer. Return dx, the gradient of the sum, and dw. (a and r both get dx: a sum hands its gradient on to either.)

dy, dskip and x have shape (M, N), w has shape (N,), rstd has shape (M,) and is fp32: the forward pass saved it. The others are fp16, bf16
or fp32, not always the same. Compute in fp32. dx has the shape and dtype of x, dw those of w, and each is rounded once.

Write it from sums, means and products, without autograd. Leave the inputs as they are.
Check with the panel in lesson 10, or with `course check 10d` in a terminal.
"""

import torch


def add_rms_norm_vjp(
    dy: torch.Tensor, dskip: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    # YOUR CODE
    pass
