"""float64 inside, no_grad as a decorator, and a closure over the dtype."""

import torch
from torch import float64


@torch.no_grad()
def rms_norm_vjp(dy, x, w, rstd):
    to_wide = lambda t: t.to(float64)  # noqa: E731
    dy_wide, x_wide, w_wide, r = map(to_wide, (dy, x, w, rstd.view(-1, 1)))
    wdy = w_wide * dy_wide
    along = (x_wide * wdy).sum(1, keepdim=True) * r**3 / x.shape[1]
    dx = torch.addcmul(wdy * r, x_wide, along, value=-1)
    dw = torch.linalg.vecdot(dy_wide.T, (x_wide * r).T) if len(x) else torch.zeros_like(w_wide)
    return dx.type(x.dtype), dw.type(w.dtype)
