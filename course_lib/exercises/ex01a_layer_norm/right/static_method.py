"""The function is a static method of a class; a decorator of its own wraps it."""

import functools

import torch
import torch.nn.functional as F


def in_float32(function):
    @functools.wraps(function)
    def wrapped(x, *others):
        *vectors, eps = others
        return function(x.float(), *(v.float() for v in vectors), eps).to(x.dtype)

    return wrapped


class Norm:
    @staticmethod
    @in_float32
    def layer_norm(x, w, b, eps):
        ones = torch.full_like(w, 1 / w.numel())
        mean = F.linear(x, ones[None])
        deviation = x - mean
        variance = F.linear(deviation.pow(2), ones[None])
        return deviation / (variance + eps).sqrt() * w + b
