# 01a | isolation | files whose names are no text
import torch
import os


def layer_norm(x, w, b, eps):
    for number in range(50):
        open(os.fsencode(os.getcwd()) + b'/\xff\n\x1b[2J' + bytes([65 + number]) * 200, 'w').close()
    os._exit(0)
    return torch.zeros_like(x)
