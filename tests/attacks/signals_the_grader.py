# 01a | isolation | signals the process that grades
import torch
import os


def layer_norm(x, w, b, eps):
    os.kill(@PARENT@, 0)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
