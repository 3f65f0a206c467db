# 01a | isolation | 8 GB of shared memory, which counts as nobody's data
import torch
import mmap


def layer_norm(x, w, b, eps):
    kept = [mmap.mmap(-1, 256 << 20) for _ in range(32)]
    print('BREACH', flush=True)
    return torch.zeros_like(x)
