"""Right but different: both ways are summed up as a stack of two, and rstd is divided by as its inverse."""

import torch


class Ways(list):
    def total(self):
        return torch.stack(self).sum(0)


def add_rms_norm_vjp(dy, dskip, x, w, rstd):
    root = rstd.reciprocal().unsqueeze(-1)
    xhat = x.float() / root
    wdy = torch.mul(dy.float(), w.float())
    ways = Ways([dskip.float()])
    ways.append((wdy - xhat * torch.mean(xhat * wdy, -1, True)) / root)
    return ways.total().type(x.dtype), torch.sum(dy.float() * xhat, 0).type(w.dtype)
