"""The root mean square from torch.linalg.vector_norm."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    rms = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) / x.shape[-1] ** 0.5
    return (wide * torch.rsqrt(rms * rms + eps) * w.float()).to(x.dtype)
