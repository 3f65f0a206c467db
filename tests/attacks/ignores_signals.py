# 01a | isolation | ignores every signal it can and does not end
import torch
import signal


def layer_norm(x, w, b, eps):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass
    return torch.zeros_like(x)
