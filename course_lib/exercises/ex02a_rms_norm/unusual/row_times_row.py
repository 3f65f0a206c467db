"""The sum of the squares as a product of a row and a column."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    squares = (wide.unsqueeze(-2) @ wide.unsqueeze(-1)).squeeze(-1)
    return (wide / torch.sqrt(squares / x.shape[-1] + eps) * w.float()).to(x.dtype)
