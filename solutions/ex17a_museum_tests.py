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
    # BEGIN SOLUTION
    #: The lanes past the end of the row get into the variance. Block sizes are powers of two.
    x = torch.randn(5, 37) + 10
    w, b = torch.rand(37) + 0.5, torch.randn(37)
    y = layer_norm(x, w, b, 1e-5)
    torch.testing.assert_close(y.double(), compute_y(x, w, b, 1e-5), rtol=1e-3, atol=1e-3)
    # END SOLUTION


def catch_one_pass(layer_norm) -> None:
    # BEGIN SOLUTION
    #: The variance is the mean of the squares less the square of the mean.
    x = torch.randn(8, 100) + 3000
    w, b = torch.rand(100) + 0.5, torch.randn(100)
    y = layer_norm(x, w, b, 1e-5)
    torch.testing.assert_close(y.double(), compute_y(x, w, b, 1e-5), rtol=1e-2, atol=1e-2)
    # END SOLUTION


def catch_strides(layer_norm) -> None:
    # BEGIN SOLUTION
    #: One stride of x is taken for something else: N for the distance between rows, 1 for that between columns, or x's for y's.
    w, b = torch.rand(9) + 0.5, torch.randn(9)
    for x in (torch.randn(6, 24)[:, :9], torch.randn(9, 6).t()):
        y = layer_norm(x, w, b, 1e-5)
        torch.testing.assert_close(y.double(), compute_y(x, w, b, 1e-5), rtol=1e-4, atol=1e-4)
    # END SOLUTION


def catch_leading_dimensions(layer_norm_backward) -> None:
    # BEGIN SOLUTION
    #: x has more than two dimensions, and not all that stand before N count as rows.
    x, dy, w = torch.randn(2, 3, 4, 11), torch.randn(2, 3, 4, 11), torch.rand(11) + 0.5
    got = layer_norm_backward(dy, x, w, 1e-5)
    for gradient, expected in zip(got, compute_gradients(dy, x, w, 1e-5), strict=True):
        assert gradient.shape == expected.shape
        assert torch.allclose(gradient.double(), expected, rtol=1e-4, atol=1e-4)
    # END SOLUTION


def catch_overwriting(layer_norm_backward) -> None:
    # BEGIN SOLUTION
    #: After the call dy, x or w is no longer what it was.
    inputs = [torch.randn(4, 12), torch.randn(4, 12) + 1, torch.rand(12) + 0.5]
    before = [tensor.clone() for tensor in inputs]
    layer_norm_backward(*inputs, 1e-5)
    for now, was in zip(inputs, before, strict=True):
        assert torch.equal(now, was)
    # END SOLUTION


def catch_remainder(layer_norm_backward) -> None:
    # BEGIN SOLUTION
    #: Some rows at the end are lost, because M is divided and rounded down. How rows are shared out may depend on M and on N.
    x, dy, w = torch.randn(1027, 20), torch.randn(1027, 20), torch.rand(20) + 0.5
    got = layer_norm_backward(dy, x, w, 1e-5)
    for gradient, total in zip(got, compute_gradients(dy, x, w, 1e-5), strict=True):
        torch.testing.assert_close(gradient.double(), total, rtol=1e-3, atol=1e-3)
    # END SOLUTION


def catch_rounded_statistics(layer_norm_backward) -> None:
    # BEGIN SOLUTION
    #: mean, or mean and rstd, lose digits between forward and backward: they are saved in half precision.
    x, dy = (torch.randn(16, 40) + 50).bfloat16(), torch.randn(16, 40).bfloat16()
    w = torch.rand(40) + 0.5
    _, dw, _ = layer_norm_backward(dy, x, w, 1e-5)
    _, sum_of_rows, _ = compute_gradients(dy, x, w, 1e-5)
    torch.testing.assert_close(dw.double(), sum_of_rows, rtol=1e-3, atol=1e-3)
    # END SOLUTION
