# 01a | isolation | changes the times of a file outside its folder
import torch
import os


def layer_norm(x, w, b, eps):
    os.utime('@VICTIM@', (0, 0))
    print('BREACH', flush=True)
    return torch.zeros_like(x)
