# 01a | isolation | signals all processes there are
import torch
import os


def layer_norm(x, w, b, eps):
    os.kill(-1, 0)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
