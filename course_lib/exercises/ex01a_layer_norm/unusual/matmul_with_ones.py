"""The mean as a product with a vector of 1 / N, corrected once."""

import torch


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    N = x.shape[-1]
    ones = torch.ones(N, dtype=torch.float32, device=x.device)
    wide = x.float()
    centred = wide - (wide @ ones / N).unsqueeze(-1)
    centred = centred - (centred @ ones / N).unsqueeze(-1)  # what the first rounding left
    var = (centred * centred) @ ones / N
    return (centred * torch.rsqrt(var + eps).unsqueeze(-1) * w.float() + b.float()).to(x.dtype)
