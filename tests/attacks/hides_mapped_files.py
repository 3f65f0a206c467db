# 01a | isolation | files without a name and a descriptor, held by a mapping
import torch
import mmap
import os
import time


def layer_norm(x, w, b, eps):
    kept = []
    for _ in range(40):
        with open('file', 'wb+') as file:
            file.write(bytes(16 << 20))
            file.flush()
            kept.append(mmap.mmap(file.fileno(), 16 << 20, access=mmap.ACCESS_READ))
        os.unlink('file')
        time.sleep(0.01)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
