"""Chunks of rows, in fp64, joined at the end."""

import torch


def rms_norm_vjp(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    parts, dw = [], torch.zeros(x.shape[1], dtype=torch.float64)
    for g, rows, r in zip(dy.double().split(3), x.double().split(3), rstd.double().split(3)):
        xhat = rows * r.unsqueeze(1)
        wdy = w.double() * g
        parts.append((wdy - xhat * (xhat * wdy).mean(1, keepdim=True)) * r.unsqueeze(1))
        dw += (g * xhat).sum(0)
    return torch.cat(parts).to(x.dtype), dw.to(w.dtype)
