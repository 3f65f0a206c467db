# 01a | isolation | files that have no name any more, and take room all the same
import torch
import os
import time


def layer_norm(x, w, b, eps):
    kept = []
    for _ in range(40):
        kept.append(open('file', 'wb', buffering=0))
        os.unlink('file')
        kept[-1].write(bytes(16 << 20))
        time.sleep(0.01)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
