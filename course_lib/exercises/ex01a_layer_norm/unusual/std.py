"""torch.std without correction, squared again."""

import torch


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    std = torch.std(wide, dim=-1, unbiased=False, keepdim=True)
    return ((wide - wide.mean(-1, True)) / (std ** 2 + eps).sqrt() * w.float() + b.float()).to(x.dtype)
