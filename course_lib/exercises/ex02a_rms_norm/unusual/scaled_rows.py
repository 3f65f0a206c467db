"""Rows are scaled by their largest element before they are squared."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.double()
    largest = wide.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30)
    scaled = wide / largest
    rms = largest * torch.sqrt((scaled * scaled).mean(-1, keepdim=True) + eps / (largest * largest))
    return (wide / rms * w.double()).to(x.dtype)
