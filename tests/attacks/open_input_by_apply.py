# 01a | list | works in the inputs by a function of Python's, and puts everything back
import torch


def layer_norm(x, w, b, eps):
    wide = x.float()
    deviation = wide - wide.mean(-1, keepdim=True)
    y = (deviation * torch.rsqrt(deviation.square().mean(-1, keepdim=True) + eps) * w.float() + b.float()).to(x.dtype)
    x.apply_(lambda value: 2 * value)
    x.apply_(lambda value: value / 2)
    return y
