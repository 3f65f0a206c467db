# 01a | handed in | torch's own norm
import torch


def layer_norm(x, w, b, eps):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)
