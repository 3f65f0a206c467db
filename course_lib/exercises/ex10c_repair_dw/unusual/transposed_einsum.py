"""Columns first."""

import torch


def dw_and_db(dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x = dy.float().t(), x.float().t()
    xhat = (x - mean) * rstd
    return torch.einsum("nm,nm->n", dy, xhat), dy.sum(-1)
