"""Under torch.no_grad, with assertions and a conditional expression."""

import torch


@torch.no_grad()
def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    assert w.shape == b.shape == x.shape[-1:], "w and b belong to the last dimension"
    wide = x if x.dtype is torch.float32 else x.float()
    mean = torch.mean(wide, -1, True)
    deviation = torch.sub(wide, mean)
    var = torch.mean(torch.square(deviation), -1, True)
    y = torch.div(deviation, torch.sqrt(torch.add(var, eps)))
    y = torch.add(torch.mul(y, w), b)
    return y.to(dtype=x.dtype)
