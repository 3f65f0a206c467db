# 01a | isolation | sleeps
import torch
import time


def layer_norm(x, w, b, eps):
    time.sleep(10**6)
    return torch.zeros_like(x)
