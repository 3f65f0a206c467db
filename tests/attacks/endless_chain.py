# 01a | isolation | an exception that is its own cause, with a name of a million characters
import torch


def layer_norm(x, w, b, eps):
    error = type('A' * 10**6, (Exception,), {})('x')
    error.__cause__ = error
    raise error
    return torch.zeros_like(x)
