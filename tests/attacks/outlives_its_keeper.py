# 01a | isolation | tells the kernel not to end it with its parent, and does not end
import torch
import ctypes


def layer_norm(x, w, b, eps):
    if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0:
        print('BREACH', flush=True)
    while True:
        pass
    return torch.zeros_like(x)
