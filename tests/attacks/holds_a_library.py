# 01a | isolation | takes a lease on a library, so that others wait for it
import torch
import fcntl
import this


def layer_norm(x, w, b, eps):
    with open(this.__file__) as library:
        fcntl.fcntl(library, 1024, fcntl.F_RDLCK)  # F_SETLEASE
    print('BREACH', flush=True)
    return torch.zeros_like(x)
