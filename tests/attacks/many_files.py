# 01a | isolation | makes files without end
import torch


def layer_norm(x, w, b, eps):
    number = 0
    while True:
        number += 1
        open(f'file{number}', 'w').close()
    return torch.zeros_like(x)
