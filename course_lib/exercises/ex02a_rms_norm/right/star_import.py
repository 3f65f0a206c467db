"""Everything of PyTorch at once, and nothing of it by another name."""

from torch import *


def rms_norm(x: Tensor, w: Tensor, eps: float) -> Tensor:
    wide = x.to(float32)
    root = sqrt(mean(wide * wide, dim=-1, keepdim=True) + eps)
    return (wide / root * w.to(float32)).to(x.dtype)
