# 01a | isolation | says of every case that it has begun, and does not end
import torch


def layer_norm(x, w, b, eps):
    for number in range(200):
        open(f'{number:02}.begin', 'w').close()
    while True:
        pass
    return torch.zeros_like(x)
