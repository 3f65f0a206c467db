"""Properties that every right kernel has, in the place of a reference."""

import torch


def plain(layer_norm, x):
    N = x.shape[-1]
    return layer_norm(x, torch.ones(N), torch.zeros(N), 0.0).double()


def catch_padding(layer_norm):
    # the variance of a normalised row is 1
    y = plain(layer_norm, torch.randn(7, 41) + 20)
    assert (y.square().mean(-1) - 1).abs().max() < 1e-3


def catch_one_pass(layer_norm):
    y = plain(layer_norm, torch.randn(16, 200) + 4000)
    assert bool(((y.square().mean(-1) - 1).abs() < 1e-2).all())


def catch_strides(layer_norm):
    # where x lies does not matter
    for x in (torch.randn(5, 40)[:, 3:14], torch.randn(11, 5).t(), torch.randn(5, 44)[:, ::4]):
        w, b = torch.randn(11), torch.randn(11)
        assert (layer_norm(x, w, b, 1e-5) - layer_norm(x.clone(memory_format=torch.contiguous_format), w, b, 1e-5)).abs().max() < 1e-4


def catch_leading_dimensions(layer_norm_backward):
    # how the rows are arranged does not matter
    dy, x, w = torch.randn(24, 10), torch.randn(24, 10), torch.randn(10)
    flat = layer_norm_backward(dy, x, w, 1e-5)
    for shape in ((24, 1, 10), (4, 6, 10), (2, 3, 4, 10)):
        got = layer_norm_backward(dy.reshape(shape), x.reshape(shape), w, 1e-5)
        for one, other in zip(got, flat, strict=True):
            assert one.numel() == other.numel()
            assert (one.reshape(other.shape) - other).abs().max() < 1e-3


def catch_overwriting(layer_norm_backward):
    # a second call finds what the first one found
    dy, x, w = torch.randn(6, 14), 5 * torch.randn(6, 14) + 2, torch.rand(14) * 3
    first = layer_norm_backward(dy, x, w, 1e-5)
    first = [gradient.clone() for gradient in first]
    for one, other in zip(layer_norm_backward(dy, x, w, 1e-5), first, strict=True):
        assert (one - other).abs().max() < 1e-4


def catch_remainder(layer_norm_backward):
    # with dy = 1 everywhere, db counts the rows
    for M in (1, 2, 3, 37, 1025):
        dx, dw, db = layer_norm_backward(torch.ones(M, 6), torch.randn(M, 6), torch.rand(6), 1e-5)
        assert (db == M).all()


def catch_rounded_statistics(layer_norm_backward):
    # xhat has mean 0, so the sum of dw over the columns is 0 for a dy that is the same in all of them
    x = (torch.randn(12, 64) + 60).bfloat16()
    dy = torch.randn(12, 1).expand(12, 64).bfloat16()
    dx, dw, db = layer_norm_backward(dy, x, torch.ones(64), 1e-5)
    assert dw.double().mean().abs() < 1e-4
