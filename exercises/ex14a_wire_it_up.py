"""Exercise 14a: a norm that trains. Wire the kernels into autograd.

You write the two halves of a torch.autograd.Function for LayerNorm, with two launchers (PyTorch's own norms are refused):

    launch_forward(x, w, b, eps) -> y, mean, rstd
    launch_backward(dy, x, w, mean, rstd) -> dx, dw, db

They take matrices, and they read N elements one after the other from the start of each row, whatever the last stride
says. dx has the dtype of x; dw and db are fp32. w and b may be None.

forward is called with x of shape (..., N), any strides; w and b of shape (N,) or None, of any floating dtype; eps a number.
Return y in the shape of x. Keep each tensor that backward needs, mean and rstd among them, with ctx.save_for_backward, and
nothing but numbers, shapes and dtypes as attributes of ctx: backward can run twice if the graph is kept, and PyTorch notices
when somebody changes a saved tensor in between. So save x itself where the launcher can read it. (A copy of a matrix that
is not needed costs a sweep over memory. The check does not look for copies that are thrown away.)

backward is called with dy, of y's shape and any strides: other readers may hold the same tensor, so leave it as it is.
Return one value for each argument of forward, in that order: a gradient in the shape of its tensor (autograd casts it to
the tensor's dtype), or None where there is none to give. ctx.needs_input_grad has True or False for each argument (False for None).
A second derivative through a dy that has a history is right, or loss.backward() refuses it with an error. A wrong one fails.

Check with the panel in lesson 14, or with `course check 14a` in a terminal.
"""

import torch
from torch.autograd.function import once_differentiable

from course_lib.norms.launchers import launch_backward, launch_forward


def forward(ctx, x: torch.Tensor, w: torch.Tensor | None, b: torch.Tensor | None, eps: float) -> torch.Tensor:
    # YOUR CODE, about 4 lines: x as a matrix whose rows lie as the launcher reads them, the launch, and what backward
    # will need.
    pass


# YOUR CODE, 1 line: Above backward, what refuses a second derivative. (Or compute a right one in backward.)
def backward(ctx, dy: torch.Tensor):
    # YOUR CODE, about 9 lines: What was kept, dy as a matrix, the launch; then one value for each of x, w, b and eps.
    pass


class Norm(torch.autograd.Function):
    """Your two halves. Norm.apply(x, w, b, 1e-5) is a LayerNorm that trains."""

    forward = staticmethod(forward)
    backward = staticmethod(backward)
