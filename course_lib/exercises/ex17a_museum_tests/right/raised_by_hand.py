"""`raise AssertionError` with words, and a helper class that collects what is wrong."""

import torch


class Report:
    def __init__(self):
        self.wrong = []

    def compare(self, name, got, want, allowed):
        same = (got.double() - want).abs() <= allowed * (1 + want.abs())  # False for a NaN
        if not same.all():
            self.wrong.append(f"{name}: {(~same).sum().item()} elements")

    def end(self):
        if self.wrong:
            raise AssertionError("; ".join(self.wrong))


def normalise(x, eps):
    x = x.double()
    centred = x - x.sum(-1, keepdim=True) / x.size(-1)
    return centred, 1 / (centred.pow(2).sum(-1, keepdim=True) / x.size(-1) + eps) ** 0.5


def catch_padding(layer_norm):
    report = Report()
    for N in (3, 9, 37, 1000 - 1):
        x, w, b = torch.randn(4, N) - 30, torch.randn(N), torch.randn(N)
        centred, rstd = normalise(x, 1e-6)
        report.compare(f"N = {N}", layer_norm(x, w, b, 1e-6), centred * rstd * w.double() + b.double(), 1e-3)
    report.end()


def catch_one_pass(layer_norm):
    report = Report()
    for mean in (-3000.0, 5000.0):
        x = torch.randn(20, 64) + mean
        centred, rstd = normalise(x, 1e-5)
        report.compare(f"mean {mean}", layer_norm(x, torch.ones(64), torch.zeros(64), 1e-5), centred * rstd, 1e-2)
    report.end()


def catch_strides(layer_norm):
    report = Report()
    x = torch.randn(7, 3, 13).transpose(0, 2)[:, 1]
    centred, rstd = normalise(x, 1e-5)
    report.compare("transposed", layer_norm(x, torch.ones(7), torch.zeros(7), 1e-5), centred * rstd, 1e-3)
    x = torch.empty(13, 20).normal_()[:, 5:12]
    centred, rstd = normalise(x, 1e-5)
    report.compare("sliced", layer_norm(x, torch.ones(7), torch.zeros(7), 1e-5), centred * rstd, 1e-3)
    report.end()


def compare_sums(report, layer_norm_backward, dy, x, w, allowed):
    centred, rstd = normalise(x, 1e-5)
    leading = tuple(range(x.ndim - 1))
    dx, dw, db = layer_norm_backward(dy, x, w, 1e-5)
    if dx.shape != x.shape or dw.shape != w.shape or db.shape != w.shape:
        raise AssertionError("a gradient has another shape than its tensor")
    report.compare("dw", dw, (dy.double() * centred * rstd).sum(leading), allowed)
    report.compare("db", db, dy.double().sum(leading), allowed)


def catch_leading_dimensions(layer_norm_backward):
    report = Report()
    for shape in ((4, 5, 6), (3, 4, 5, 6)):
        compare_sums(report, layer_norm_backward, torch.randn(shape), torch.randn(shape), torch.randn(6), 1e-3)
    report.end()


def catch_overwriting(layer_norm_backward):
    inputs = torch.randn(2, 8), torch.randn(2, 8), torch.randn(8)
    total = [t.sum().item() for t in inputs], [t.square().sum().item() for t in inputs]
    layer_norm_backward(inputs[0], inputs[1], inputs[2], 1e-5)
    if total != ([t.sum().item() for t in inputs], [t.square().sum().item() for t in inputs]):
        raise AssertionError("an input has changed")


def catch_remainder(layer_norm_backward):
    report = Report()
    compare_sums(report, layer_norm_backward, torch.rand(1999, 3) + 1, torch.randn(1999, 3), torch.randn(3), 1e-4)
    dy, x, w = torch.randn(15, 4), torch.randn(15, 4), torch.ones(4)
    if (layer_norm_backward(dy, x, w, 1e-5)[0] == 0).all(-1).any():
        report.wrong.append("a row of dx is 0")
    report.end()


def catch_rounded_statistics(layer_norm_backward):
    report = Report()
    x = (torch.randn(10, 50) + 200).bfloat16()
    compare_sums(report, layer_norm_backward, torch.randn_like(x), x, torch.ones(50), 1e-2)
    report.end()
