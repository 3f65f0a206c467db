"""Right but different: dskip is there from the start, and the norm's share is taken off and added to it in place of a copy."""

import torch


def add_rms_norm_vjp(dy, dskip, x, w, rstd):
    dx = dskip.to(torch.float32, copy=True)
    x32, dy32, w32 = x.to(torch.float32), dy.to(torch.float32), w.to(torch.float32)
    scaled = dy32 * w32 * rstd[:, None]
    dx += scaled
    dx -= x32 * (rstd**2 * (scaled * x32).sum(1) / x32.size(1))[:, None]
    return dx.to(x), (dy32 * (x32 * rstd[:, None])).sum(0).to(w)
