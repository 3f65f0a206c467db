# 01a | isolation | leaves shared memory behind
import torch
import ctypes


def layer_norm(x, w, b, eps):
    if ctypes.CDLL(None).shmget(@KEY@, 4096, 0o1666) != -1:
        print('BREACH', flush=True)
    return torch.zeros_like(x)
