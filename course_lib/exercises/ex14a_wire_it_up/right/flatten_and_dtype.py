"""A right solution of 14a: leading dimensions flattened, all gradients handed back where there is a tensor, dtypes kept on ctx."""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


def as_rows(t):
    t = t.unsqueeze(0) if t.dim() == 1 else t.flatten(0, -2)
    return t if t.stride(1) == 1 else t.contiguous()


def forward(ctx, x, w, b, eps):
    rows = as_rows(x)
    y, mean, rstd = launch_forward(rows, w, b, eps)
    ctx.save_for_backward(mean, rstd, rows, w)
    ctx.shape = x.shape
    ctx.has_w = w is not None
    ctx.b_dtype = b.dtype if b is not None else None
    return y.reshape(ctx.shape)


@once_differentiable
def backward(ctx, dy):
    mean, rstd, rows, w = ctx.saved_tensors
    dx, dw, db = launch_backward(as_rows(dy), rows, w, mean, rstd)
    if not ctx.has_w:
        dw = None
    return dx.reshape(ctx.shape), dw, db if ctx.b_dtype is not None else None, None


class Norm(torch.autograd.Function):
    forward = staticmethod(forward)
    backward = staticmethod(backward)
