"""PyTorch's own LayerNorm and its autograd in fp64 say what has to come out."""

import torch
import torch.nn.functional as F
from torch.testing import assert_close


def expect_y(x, w, b, eps):
    return F.layer_norm(x.double(), w.shape, w.double(), b.double(), eps)


def expect_gradients(dy, x, w, eps):
    leaves = [t.double().requires_grad_() for t in (x, w, torch.zeros_like(w))]
    y = F.layer_norm(leaves[0], w.shape, leaves[1], leaves[2], eps)
    return torch.autograd.grad(y, leaves, dy.double())


def compare(got, want, allowed=1e-3):
    assert_close(got, want.to(got.dtype), rtol=allowed, atol=allowed)


def catch_padding(layer_norm):
    x, w, b = torch.rand(3, 3) + 7, torch.ones(3), torch.zeros(3)
    compare(layer_norm(x, w, b, 1e-5), expect_y(x, w, b, 1e-5))


def catch_one_pass(layer_norm):
    x = torch.tensor([[80000.0, 80001, 80002, 80003], [40000, 40001, 40002, 40003], [1449.57, 1448.87, 1450.65, 1449.26]])
    w, b = torch.ones(4), torch.zeros(4)
    compare(layer_norm(x, w, b, 1e-5), expect_y(x, w, b, 1e-5), 2e-2)


def catch_strides(layer_norm):
    x, w, b = torch.randn(8, 30)[1:6, 4:24:2], torch.randn(10), torch.randn(10)
    compare(layer_norm(x, w, b, 1e-5), expect_y(x, w, b, 1e-5))


def catch_leading_dimensions(layer_norm_backward):
    x, dy, w = torch.randn(3, 2, 2, 2, 5), torch.randn(3, 2, 2, 2, 5), torch.randn(5)
    for got, want in zip(layer_norm_backward(dy, x, w, 1e-5), expect_gradients(dy, x, w, 1e-5), strict=True):
        compare(got, want)


def catch_overwriting(layer_norm_backward):
    x, dy, w = torch.arange(12.0).reshape(3, 4).square(), torch.arange(12.0).reshape(3, 4), torch.arange(4.0)
    before = x.tolist(), dy.tolist(), w.tolist()
    layer_norm_backward(dy, x, w, 1e-5)
    assert (x.tolist(), dy.tolist(), w.tolist()) == before


def catch_remainder(layer_norm_backward):
    for M in (5, 1555):
        x, dy, w = torch.randn(M, 8), torch.randn(M, 8), torch.randn(8)
        for got, want in zip(layer_norm_backward(dy, x, w, 1e-5), expect_gradients(dy, x, w, 1e-5), strict=True):
            compare(got, want)


def catch_rounded_statistics(layer_norm_backward):
    for dtype, mean in ((torch.float16, 2000), (torch.bfloat16, 300)):
        x, dy = (torch.randn(8, 24) * 4 + mean).to(dtype), torch.randn(8, 24).to(dtype)
        w = torch.rand(24) + 0.5
        got, want = layer_norm_backward(dy, x, w, 1e-5), expect_gradients(dy, x, w, 1e-5)
        compare(got[1], want[1], 1e-2)
