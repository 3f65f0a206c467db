"""needs_input_grad unpacked, walrus and conditional expressions, flatten and unflatten."""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


def forward(ctx, x: torch.Tensor, w: torch.Tensor | None, b: torch.Tensor | None, eps: float) -> torch.Tensor:
    rows = (x[None] if (one := x.ndim == 1) else x).flatten(0, -2).contiguous()
    y, mean, rstd = launch_forward(rows, w, b, eps)
    ctx.save_for_backward(rows, w, b, mean, rstd)
    return y[0] if one else y.view(x.shape)


@once_differentiable
def backward(ctx, dy: torch.Tensor):
    rows, w, b, mean, rstd = ctx.saved_tensors
    dx, dw, db = launch_backward(dy.reshape(rows.shape).contiguous(), rows, w, mean, rstd)
    need_x, need_w, need_b, _ = ctx.needs_input_grad
    return (
        dx.view(dy.shape) if need_x else None,
        dw.to(w.dtype) if need_w else None,
        db.to(b.dtype) if need_b else None,
        None,
    )


class Norm(torch.autograd.Function):
    """Your two halves. Norm.apply(x, w, b, 1e-5) is a LayerNorm that trains."""

    forward = staticmethod(forward)
    backward = staticmethod(backward)
