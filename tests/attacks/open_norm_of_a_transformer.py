# 01a | handed in | takes the norm out of a transformer's layer
import torch


def layer_norm(x, w, b, eps):
    layer = torch.nn.TransformerEncoderLayer(x.shape[-1], 1, layer_norm_eps=eps)
    norm = layer.norm1
    norm.weight, norm.bias = torch.nn.Parameter(w), torch.nn.Parameter(b)
    return norm(x).detach()
