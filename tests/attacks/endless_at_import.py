# 01a | isolation | does not end before a case begins
import torch
while True:
    pass


def layer_norm(x, w, b, eps):
    pass
    return torch.zeros_like(x)
