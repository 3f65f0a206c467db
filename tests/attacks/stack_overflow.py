# 01a | isolation | recurses until the stack ends
import torch
import sys


def layer_norm(x, w, b, eps):
    sys.setrecursionlimit(10**9)

    def deeper(n):
        return deeper(n + 1) + repr([n])

    deeper(0)
    return torch.zeros_like(x)
