"""y is allocated and filled; only tensors of its own are changed in place."""

import torch


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    y = x.float().clone()
    y -= y.mean(dim=-1, keepdim=True)
    y *= (y.pow(2).mean(dim=-1, keepdim=True) + eps).rsqrt()
    y *= w
    y += b
    return y.to(x.dtype)
