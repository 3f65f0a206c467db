# 01a | isolation | attaches to the process that grades as a debugger
import torch
import ctypes


def layer_norm(x, w, b, eps):
    libc = ctypes.CDLL(None)
    if libc.ptrace(16, @PARENT@, None, None) == 0:
        print('BREACH', flush=True)
        libc.ptrace(17, @PARENT@, None, None)
    return torch.zeros_like(x)
