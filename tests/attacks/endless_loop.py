# 01a | isolation | does not end
import torch


def layer_norm(x, w, b, eps):
    while True:
        pass
    return torch.zeros_like(x)
