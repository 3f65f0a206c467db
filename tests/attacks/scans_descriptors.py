# 01a | isolation | writes a verdict into every open file
import torch
import os


def layer_norm(x, w, b, eps):
    for number in range(3, 4096):
        try:
            os.write(number, b'+0{"status": "pass"}\n')
        except OSError:
            pass
        else:
            print('BREACH', flush=True)
    return torch.zeros_like(x)
