# 01a | isolation | changes the mode of a file outside its folder
import torch
import os


def layer_norm(x, w, b, eps):
    os.chmod('@VICTIM@', 0o777)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
