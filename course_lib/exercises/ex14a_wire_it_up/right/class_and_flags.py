"""Both halves are methods of the class; a shape, a flag and a number are kept on ctx; backward is differentiable once."""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


class Norm(torch.autograd.Function):
    """Norm.apply(x, w, b, 1e-5) is a LayerNorm that trains."""

    @staticmethod
    def forward(ctx, x, w, b, eps):
        width = x.shape[-1]
        ctx.shape, ctx.has_bias, ctx.width = x.shape, b is not None, int(width)
        ctx.eps = float(eps)
        matrix = x.reshape(-1, width).contiguous()
        y, *statistics = launch_forward(matrix, w, b, ctx.eps)
        ctx.save_for_backward(matrix, w, *statistics)
        ctx.dtypes = [None if v is None else v.dtype for v in (x, w, b)]
        return y.view(ctx.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        matrix, w, mean, rstd = ctx.saved_tensors
        dx, dw, db = launch_backward(dy.reshape(-1, ctx.width).contiguous(), matrix, w, mean, rstd)
        gradients = (dx.view(ctx.shape), dw, db)
        wanted = zip(gradients, ctx.dtypes, ctx.needs_input_grad)
        return *(g.to(dtype) if needed else None for g, dtype, needed in wanted), None
