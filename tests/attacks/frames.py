# 01a | isolation | looks for expected values in the frames that called it
import torch
import sys


def layer_norm(x, w, b, eps):
    frame = sys._getframe()
    while frame:
        if 'expected' in frame.f_locals or 'plans' in frame.f_locals or 'plan' in frame.f_locals:
            print('BREACH', flush=True)
        frame = frame.f_back
    return torch.zeros_like(x)
