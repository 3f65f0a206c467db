# 01a | isolation | kills the process that started it
import torch
import os


def layer_norm(x, w, b, eps):
    os.kill(os.getppid(), 9)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
