"""RMSNorm with float64 statistics and a reciprocal square root written as a power."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    mean_square = x.double().pow(2).sum(-1, keepdim=True) / x.size(-1)
    return (x.double() * torch.pow(mean_square + eps, -0.5) * w.double()).to(x.dtype)
