# 01a | isolation | takes all memory
import torch


def layer_norm(x, w, b, eps):
    kept = []
    while True:
        kept.append(bytearray(b'x' * (64 << 20)))
    return torch.zeros_like(x)
