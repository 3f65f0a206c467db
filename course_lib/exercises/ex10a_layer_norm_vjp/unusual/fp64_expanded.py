"""dx as rstd / N * (N wdy - sum - xhat sum), in fp64."""

import torch


def layer_norm_vjp(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    N = x.size(-1)
    dy64, w64, rstd64 = dy.double(), w.double(), rstd.double().view(-1, 1)
    xhat = (x.double() - mean.double().view(-1, 1)) * rstd64
    wdy = dy64 * w64
    dx = rstd64 / N * (N * wdy - wdy.sum(1, keepdim=True) - xhat * (wdy * xhat).sum(1, keepdim=True))
    return tuple(t.to(like.dtype) for t, like in ((dx, x), ((dy64 * xhat).sum(0), w), (dy64.sum(0), w)))
