"""Rows become columns and back."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    columns = x.float().movedim(-1, 0)
    rstd = 1.0 / ((columns * columns).mean(0) + eps).sqrt()
    return ((columns * rstd).movedim(0, -1) * w.float()).to(x.dtype)
