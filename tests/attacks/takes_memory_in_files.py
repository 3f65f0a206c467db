# 01a | isolation | memory as files that lie in memory
import torch
import os
import time


def layer_norm(x, w, b, eps):
    kept = []
    for _ in range(40):
        kept.append(os.memfd_create('x'))
        for _ in range(4):
            os.write(kept[-1], bytes(16 << 20))
        time.sleep(0.01)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
