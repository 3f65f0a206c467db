# 01a | isolation | replaces the clocks and does not end
import torch
import time


def layer_norm(x, w, b, eps):
    time.time = time.monotonic = time.perf_counter = lambda: 0.0
    while True:
        pass
    return torch.zeros_like(x)
