"""Branches on None and not on needs_input_grad."""

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
    needs = ctx.needs_input_grad
    return (
        dx.view(dy.shape) if needs[0] else None,
        None if w is None else dw.to(w.dtype),
        None if b is None else db.to(b.dtype),
        None,
    )


class Norm(torch.autograd.Function):
    """Your two halves. Norm.apply(x, w, b, 1e-5) is a LayerNorm that trains."""

    forward = staticmethod(forward)
    backward = staticmethod(backward)
