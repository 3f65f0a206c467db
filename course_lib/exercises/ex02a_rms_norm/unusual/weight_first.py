"""w and rstd are multiplied first, in fp64."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide, scale = x.double(), w.double()
    scale = scale * torch.reciprocal(torch.sqrt(wide.pow(2).sum(-1, keepdim=True) / x.size(-1) + eps))
    return (wide * scale).to(x.dtype)
