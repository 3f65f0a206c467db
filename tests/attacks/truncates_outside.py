# 01a | isolation | empties a file outside its folder
import torch
import os


def layer_norm(x, w, b, eps):
    os.truncate('@VICTIM@', 0)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
