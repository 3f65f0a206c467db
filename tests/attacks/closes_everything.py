# 01a | isolation | closes every descriptor, and goes on
import torch
import os


def layer_norm(x, w, b, eps):
    os.closerange(0, 4096)
    while True:
        pass
    return torch.zeros_like(x)
