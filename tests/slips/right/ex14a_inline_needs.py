"""Asks ctx.needs_input_grad in place, eps kept, gradients by a loop."""

import torch

from course_lib.norms.launchers import launch_backward, launch_forward


def forward(ctx, x: torch.Tensor, w: torch.Tensor | None, b: torch.Tensor | None, eps: float) -> torch.Tensor:
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    y, mean, rstd = launch_forward(rows, w, b, eps)
    ctx.save_for_backward(rows, w, b, mean, rstd)
    return y.view(x.shape)


def backward(ctx, dy: torch.Tensor):
    rows, w, b, mean, rstd = ctx.saved_tensors
    dx, dw, db = launch_backward(dy.reshape(rows.shape).contiguous(), rows, w, mean, rstd)
    gradients = []
    for t, like, need in zip((dx, dw, db), (dy, w, b), ctx.needs_input_grad):
        gradients.append(t.reshape(like.shape).to(like.dtype) if need else None)
    return (*gradients, None)


class Norm(torch.autograd.Function):
    """Your two halves. Norm.apply(x, w, b, 1e-5) is a LayerNorm that trains."""

    forward = staticmethod(forward)
    backward = staticmethod(backward)
