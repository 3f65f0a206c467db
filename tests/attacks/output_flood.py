# 01a | isolation | prints without end
import torch
import os


def layer_norm(x, w, b, eps):
    while True:
        os.write(1, b'x' * 65536)
    return torch.zeros_like(x)
