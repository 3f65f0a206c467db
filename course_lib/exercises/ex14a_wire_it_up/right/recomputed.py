"""A right solution of 14a: saves no statistics and launches the forward kernel again, with the eps that it kept."""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


def forward(ctx, x, w, b, eps):
    N = x.size(-1)
    matrix = x.contiguous().view(-1, N)
    ctx.save_for_backward(matrix, w)
    ctx.eps = eps
    ctx.leading = x.shape[:-1]
    y, _, _ = launch_forward(matrix, w, b, eps)
    return y.view(*x.shape)


@once_differentiable
def backward(ctx, dy):
    matrix, w = ctx.saved_tensors
    _, mean, rstd = launch_forward(matrix, None, None, ctx.eps)
    dy = dy.contiguous().view(matrix.shape)
    gradients = launch_backward(dy, matrix, w, mean, rstd)
    dx, dw, db = [gradients[i] if ctx.needs_input_grad[i] else None for i in range(3)]
    if dx is not None:
        dx = dx.view(*ctx.leading, matrix.shape[1])
    return dx, dw, db, None


class Norm(torch.autograd.Function):
    forward = staticmethod(forward)
    backward = staticmethod(backward)
