"""The squares are added up by einsum."""

import torch


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    N = x.shape[-1]
    wide = x.float()
    wide = wide - wide.sum(-1, keepdim=True) / N
    squares = torch.einsum("...n,...n->...", wide, wide)
    return torch.addcmul(b.float(), wide * torch.rsqrt(squares / N + eps)[..., None], w.float()).to(x.dtype)
