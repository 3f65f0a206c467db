"""dw as the product of rstd with dy * x."""

import torch


def rms_norm_vjp(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    N = x.shape[1]
    g, wide = dy.float(), x.float()
    dw = torch.matmul(rstd, g * wide)
    wdy = g * w.float()
    along = (wide * wdy).sum(1) * rstd * rstd / N
    dx = torch.addcmul(wdy, wide, along[:, None], value=-1) * rstd[:, None]
    return dx.to(x.dtype), dw.to(w.dtype)
