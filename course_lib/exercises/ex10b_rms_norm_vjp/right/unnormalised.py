"""From x and rstd alone, as many kernels have it: dx = rstd * wdy - rstd^3 * x * mean(x * wdy)."""

import torch


def rms_norm_vjp(dy, x, w, rstd):
    r = rstd[:, None]
    wide, wdy = x.float(), (dy * w.float() if dy.dtype == torch.float32 else dy.float() * w.float())
    # r^3 alone would overflow nothing here, but x * r stays near 1
    scaled = wide * r
    dx = r * wdy - r * scaled * (scaled * wdy).mean(dim=-1, keepdim=True)
    return dx.to(x.dtype), torch.sum(dy.float() * scaled, 0).to(w.dtype)
