"""Exercise 17a: write the tests that would have caught them.

Seven bugs of lesson 17, one function each. It gets a kernel to test: choose an input, call the kernel, and raise AssertionError if
what comes back is wrong. `assert`, torch.testing.assert_close and `raise AssertionError(...)` all do that. Return if it is right.

The first three get a forward pass, the others a backward pass, which computes mean and rstd itself, as its forward pass saves them:

    layer_norm(x, w, b, eps) -> y
    layer_norm_backward(dy, x, w, eps) -> dx, dw, db

x has shape (..., N) with any number of dimensions before N, and any strides; w and b have shape (N,). Every floating dtype is taken.
y and dx have the shape and dtype of x, dw and db the dtype of w. A right kernel computes in fp32, adds in an order of its own, and rounds
once, at the end; nothing is promised about the last bits, nor about the strides of what it returns.

Each function is called with several kernels that have the bug, in different forms and block sizes, and with several right kernels, which
differ in all that a kernel may choose. It has to find every bug of its kind and accuse no right kernel. It gets one kernel a call, in
an order that changes with your file, and remembers nothing from one call to the next.

Check with the panel in lesson 17, or with `course check 17a` in a terminal. The verdict says how many of the seven you have.
"""

import torch


def compute_y(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """What y has to be, in fp64."""
    x, w, b = x.double(), w.double(), b.double()
    d = x - x.mean(-1, keepdim=True)
    return d / torch.sqrt((d * d).mean(-1, keepdim=True) + eps) * w + b


def compute_gradients(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    """What dx, dw and db have to be, in fp64."""
    N = x.shape[-1]
    dy, x, w = dy.double(), x.double(), w.double()
    d = x - x.mean(-1, keepdim=True)
    rstd = 1 / torch.sqrt((d * d).mean(-1, keepdim=True) + eps)
    xhat, wdy = d * rstd, dy * w
    dx = (wdy - xhat * (xhat * wdy).mean(-1, keepdim=True) - wdy.mean(-1, keepdim=True)) * rstd
    return dx, (dy * xhat).reshape(-1, N).sum(0), dy.reshape(-1, N).sum(0)


def catch_padding(layer_norm) -> None:
    # YOUR CODE, about 4 lines: The lanes past the end of the row get into the variance. Block sizes are powers of
    # two.
    pass


def catch_one_pass(layer_norm) -> None:
    # YOUR CODE, about 4 lines: The variance is the mean of the squares less the square of the mean.
    pass


def catch_strides(layer_norm) -> None:
    # YOUR CODE, about 4 lines: One stride of x is taken for something else: N for the distance between rows, 1 for
    # that between columns, or x's for y's.
    pass


def catch_leading_dimensions(layer_norm_backward) -> None:
    # YOUR CODE, about 5 lines: x has more than two dimensions, and not all that stand before N count as rows.
    pass


def catch_overwriting(layer_norm_backward) -> None:
    # YOUR CODE, about 5 lines: After the call dy, x or w is no longer what it was.
    pass


def catch_remainder(layer_norm_backward) -> None:
    # YOUR CODE, about 4 lines: Some rows at the end are lost, because M is divided and rounded down. How rows are
    # shared out may depend on M and on N.
    pass


def catch_rounded_statistics(layer_norm_backward) -> None:
    # YOUR CODE, about 5 lines: mean, or mean and rstd, lose digits between forward and backward: they are saved in
    # half precision.
    pass
