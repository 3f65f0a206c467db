"""The loop stays and adds up."""

import torch


def dw_and_db(dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x = dy.float(), x.float()
    dw = torch.zeros_like(x[0])
    db = torch.zeros_like(x[0])
    for row in range(dy.shape[0]):
        dw = dw + dy[row] * (x[row] - mean[row]) * rstd[row]
        db = db + dy[row]
    return dw, db
