# 01a | isolation | prints errors without end
import torch
import sys


def layer_norm(x, w, b, eps):
    while True:
        print('x' * 60000, file=sys.stderr)
    return torch.zeros_like(x)
