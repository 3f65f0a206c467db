# 01a | isolation | raises a message of 100 MB
import torch


def layer_norm(x, w, b, eps):
    raise ValueError('x' * 100_000_000)
