# 01a | isolation | ends with a signal
import torch
import os


def layer_norm(x, w, b, eps):
    os.abort()
    return torch.zeros_like(x)
