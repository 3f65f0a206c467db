"""dx by taking away the mean first and the part along xhat after that."""

import torch


def without_mean(t):
    return t - t.mean(dim=1, keepdim=True)


def layer_norm_vjp(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = rstd.reshape(-1, 1)
    g = dy.float()
    xhat = (x.float() - mean.reshape(-1, 1)) * scale
    wdy = w.float() * g
    along = (xhat * wdy).mean(1, keepdim=True)
    dx = (without_mean(wdy) - xhat * along) * scale
    dw, db = torch.sum(g * xhat, 0), torch.sum(g, 0)
    return dx.to(x.dtype), dw.to(w.dtype), db.to(w.dtype)
