"""Makes hooks of saving and does not use them: a harmless name."""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


def forward(ctx, x, w, b, eps):
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    y, mean, rstd = launch_forward(rows, w, b, eps)
    ctx.save_for_backward(rows, w, b, mean, rstd)
    torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)
    return y.view(x.shape)


@once_differentiable
def backward(ctx, dy):
    _, w, b, mean, rstd = ctx.saved_tensors
    rows = ctx.saved_tensors[0]
    dx, dw, db = launch_backward(dy.reshape(rows.shape).contiguous(), rows, w, mean, rstd)
    needs = ctx.needs_input_grad
    return (dx.view(dy.shape) if needs[0] else None, dw.to(w.dtype) if needs[1] else None, db.to(b.dtype) if needs[2] else None, None)
