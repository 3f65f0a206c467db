"""The loop stays, and adds."""

import torch


def dw_and_db(dy, x, mean, rstd):
    dw = torch.zeros(x.shape[1])
    db = torch.zeros(x.shape[1])
    for row in range(dy.shape[0]):
        dw = dw + dy[row].float() * (x[row].float() - mean[row]) * rstd[row]
        db = db + dy[row].float()
    return dw, db
