# 01a | isolation | signals its process group
import torch
import os


def layer_norm(x, w, b, eps):
    os.killpg(0, 0)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
