# 01a | isolation | makes itself root of a namespace of its own
import torch
import ctypes


def layer_norm(x, w, b, eps):
    if ctypes.CDLL(None).unshare(0x10000000) == 0:
        print('BREACH', flush=True)
    return torch.zeros_like(x)
