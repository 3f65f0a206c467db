# 01a | handed in | a norm of one group is the norm of a row
import torch


def layer_norm(x, w, b, eps):
    return (torch.nn.functional.group_norm(x.reshape(-1, x.shape[-1], 1).float(), 1, w.float(), b.float(), eps)).reshape(x.shape).to(x.dtype)
