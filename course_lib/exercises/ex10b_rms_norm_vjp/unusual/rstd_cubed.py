"""dx = rstd wdy - rstd^3 x mean(x wdy)."""

import torch


def rms_norm_vjp(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r, g, wide = rstd[:, None], dy.float(), x.float()
    wdy = g * w.float()
    dx = r * wdy - r ** 3 * wide * (wide * wdy).mean(-1, keepdim=True)
    dw = (g * wide * r).sum(0)
    return dx.to(x.dtype), dw.to(w.dtype)
