# 01a | handed in | NumPy computes it
import torch
import numpy as np


def layer_norm(x, w, b, eps):
    v = x.double().numpy()
    c = v - v.mean(-1, keepdims=True)
    y = c / np.sqrt((c * c).mean(-1, keepdims=True) + eps)
    return (torch.from_numpy(y) * w.double() + b.double()).to(x.dtype)
