"""A function inside the function, tensordot, unbind and detach; an old attempt stands above."""

import torch


def rms_norm_old(x, w, eps):
    import os  # never reached: nothing calls this

    return os.environ, torch.nn.functional.rms_norm(x, w.shape, w, eps)


def rms_norm(x, w, eps):
    def rstd(row):
        return torch.rsqrt(torch.tensordot(row, row, dims=1) / row.numel() + eps)

    rows = x.detach().reshape(-1, x.shape[-1]).float()
    y = torch.stack([row * rstd(row) for row in rows.unbind(0)]) if len(rows) else rows
    return (y * w.float()).reshape(x.shape).to(x.dtype)
