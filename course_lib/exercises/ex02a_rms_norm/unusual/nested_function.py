"""A function inside the function and a keyword-only default."""

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    def rstd_of(t, *, dim=-1):
        return (t.square().mean(dim=dim, keepdim=True) + eps).pow(-0.5)

    wide = x.to(torch.float)
    return wide.mul(rstd_of(wide)).mul(w.to(torch.float)).to(x.dtype)
