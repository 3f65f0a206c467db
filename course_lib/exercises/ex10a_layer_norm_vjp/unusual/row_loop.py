"""Row by row, with running sums for dw and db."""

import torch


def layer_norm_vjp(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    N = w.numel()
    dx = torch.empty(x.shape, dtype=torch.float32)
    dw, db = torch.zeros(N), torch.zeros(N)
    for i, (g, row) in enumerate(zip(dy.float(), x.float())):
        xhat = (row - mean[i]) * rstd[i]
        wdy = w.float() * g
        dx[i] = rstd[i] * (wdy - xhat * (xhat @ wdy / N) - wdy.mean())
        dw += g * xhat
        db += g
    return dx.to(x.dtype), dw.to(w.dtype), db.to(w.dtype)
