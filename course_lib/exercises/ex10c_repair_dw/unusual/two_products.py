"""dw as rstd @ (dy x) - (rstd mean) @ dy in fp64, db as ones @ dy."""

import torch


def dw_and_db(dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x, mean, rstd = dy.double(), x.double(), mean.double(), rstd.double()
    dw = rstd @ (dy * x) - (rstd * mean) @ dy
    db = torch.ones_like(rstd) @ dy
    return dw.float(), db.float()
