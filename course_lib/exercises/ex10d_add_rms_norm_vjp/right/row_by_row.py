"""Right but different: one row after the other, and dw grows with each of them."""

import torch


def through_the_norm(dy, x, w, rstd):
    xhat = x * rstd
    wdy = dy * w
    return (wdy - xhat * torch.dot(xhat, wdy) / len(x)) * rstd, dy * xhat


def add_rms_norm_vjp(dy, dskip, x, w, rstd):
    dx = torch.empty_like(x, dtype=torch.float32)
    dw = torch.zeros_like(w, dtype=torch.float64)
    for m in range(x.shape[0]):
        dx[m], of_w = through_the_norm(dy[m].float(), x[m].float(), w.float(), rstd[m])
        dw += of_w
    return torch.add(dx, dskip).to(x.dtype), dw.float().to(w.dtype)
