# 01a | isolation | reads where nothing is
import torch
import ctypes


def layer_norm(x, w, b, eps):
    ctypes.string_at(0)
    return torch.zeros_like(x)
