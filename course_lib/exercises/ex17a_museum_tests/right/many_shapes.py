"""Loops over shapes, layouts and dtypes, with one comparison for all of them."""

import torch

SHAPES = ((1, 1), (3, 5), (2, 3, 7), (2, 1, 3, 33), (1, 100), (1031, 9), (130, 65))
EPS = 1e-5


def fp64(x, w, b):
    x = x.double()
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) / (var + EPS).sqrt() * w.double() + b.double()


def fp64_gradients(dy, x, w):
    N = x.shape[-1]
    dy, x, w = dy.double().reshape(-1, N), x.double().reshape(-1, N), w.double()
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    rstd = (var + EPS).rsqrt()
    xhat, wdy = (x - mean) * rstd, dy * w
    dx = (wdy - xhat * (xhat * wdy).mean(1, keepdim=True) - wdy.mean(1, keepdim=True)) * rstd
    return dx, (dy * xhat).sum(0), dy.sum(0)


def near(got, want, allowed):
    scale = max(want.abs().max().item(), 1.0)
    error = (got.double().reshape(want.shape) - want).abs().max().item()
    assert error <= allowed * scale, f"off by {error}"


def forward_is_right(layer_norm, make, allowed):
    for shape in SHAPES:
        w, b = torch.randn(shape[-1]), torch.randn(shape[-1])
        for x in make(shape):
            y = layer_norm(x, w, b, EPS)
            assert y.shape == x.shape and y.dtype == x.dtype
            near(y, fp64(x, w, b), allowed)


def backward_is_right(layer_norm_backward, make, allowed):
    for shape in SHAPES:
        x, w = make(shape), torch.rand(shape[-1]) + 0.5
        dy = torch.randn(shape).to(x.dtype)
        got = layer_norm_backward(dy, x, w, EPS)
        for gradient, want in zip(got, fp64_gradients(dy, x, w), strict=True):
            assert gradient.numel() == want.numel()
            near(gradient, want, allowed)


def catch_padding(layer_norm):
    forward_is_right(layer_norm, lambda shape: [torch.randn(shape) + 5, torch.randn(shape) - 100], 1e-3)


def catch_one_pass(layer_norm):
    forward_is_right(layer_norm, lambda shape: [torch.randn(shape) + 2000], 1e-2)


def catch_strides(layer_norm):
    def layouts(shape):
        wide = torch.randn(*shape[:-1], 3 * shape[-1])
        turned = torch.randn(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
        return [wide[..., : shape[-1]], wide[..., ::3], turned]

    forward_is_right(layer_norm, layouts, 1e-3)


def catch_leading_dimensions(layer_norm_backward):
    backward_is_right(layer_norm_backward, torch.randn, 1e-3)


def catch_overwriting(layer_norm_backward):
    for shape in SHAPES[1:]:
        dy, x, w = torch.randn(shape), torch.randn(shape) * 3 + 1, torch.rand(shape[-1]) + 2
        copies = dy.clone(), x.clone(), w.clone()
        layer_norm_backward(dy, x, w, EPS)
        for now, was in zip((dy, x, w), copies, strict=True):
            assert torch.equal(now, was)


def catch_remainder(layer_norm_backward):
    backward_is_right(layer_norm_backward, torch.randn, 1e-4)


def catch_rounded_statistics(layer_norm_backward):
    backward_is_right(layer_norm_backward, lambda shape: (torch.randn(shape) * 4 + 100).bfloat16(), 2e-2)
