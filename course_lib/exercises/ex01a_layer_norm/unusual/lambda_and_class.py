"""A class keeps the two statistics; a lambda takes the mean."""

import torch


mean_of = lambda t: t.sum(dim=-1, keepdim=True) / t.shape[-1]  # noqa: E731


class Statistics:
    def __init__(self, wide: torch.Tensor, eps: float):
        self.mean = mean_of(wide)
        self.rstd = torch.rsqrt(mean_of((wide - self.mean) * (wide - self.mean)) + eps)

    def apply(self, wide: torch.Tensor) -> torch.Tensor:
        return (wide - self.mean) * self.rstd


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (Statistics(wide, eps).apply(wide) * w.float() + b.float()).to(x.dtype)
