"""Two sums over rows as one product of matrices, in float64, with an iterator of chunks."""

import itertools

import torch


def dw_and_db(dy, x, mean, rstd):
    dw = torch.zeros(x.shape[1], dtype=torch.float64)
    db = torch.zeros_like(dw)
    rows = zip(dy.double(), x.double(), mean.tolist(), rstd.tolist())
    while chunk := list(itertools.islice(rows, 16)):
        for g, row, m, r in chunk:
            dw += g * ((row - m) * r)
            db += g
    return dw.float(), db.float()
