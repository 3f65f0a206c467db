# 01a | isolation | ends the process with exit code 0
import torch
import os


def layer_norm(x, w, b, eps):
    os._exit(0)
    return torch.zeros_like(x)
