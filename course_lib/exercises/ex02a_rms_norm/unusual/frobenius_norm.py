"""The root mean square by torch.norm."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    mean_square = torch.norm(wide, dim=-1, keepdim=True) ** 2 / wide.shape[-1]
    return (wide / (mean_square + eps) ** 0.5 * w.float()).to(x.dtype)
