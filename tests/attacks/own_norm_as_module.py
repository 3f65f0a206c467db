# 01a | handed in | torch's own norm, as a module
import torch


def layer_norm(x, w, b, eps):
    module = torch.nn.LayerNorm(x.shape[-1], eps)
    module.weight.data, module.bias.data = w, b
    return module(x)
