"""rstd applied first, sums divided once by N, dw by einsum, and a helper: the same gradients in another order."""

import torch


def row_sum(values):
    return values.sum(dim=-1, keepdim=True)


def layer_norm_vjp(dy, x, w, mean, rstd):
    g, v = dy.to(torch.float32), x.to(torch.float32)
    scale = rstd[:, None]
    xhat = v * scale - (mean * rstd)[:, None]
    wdy = g * w.to(torch.float32) * scale
    dx = wdy - (row_sum(wdy) + xhat * row_sum(wdy * xhat)) / x.size(1)
    dw = torch.einsum("mn,mn->n", g, xhat)
    return [dx.type_as(x), dw.type_as(w), torch.ones(x.size(0)).matmul(g).type_as(w)]
