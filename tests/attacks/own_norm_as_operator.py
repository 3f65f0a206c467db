# 01a | handed in | torch's own norm, as an operator of the dispatcher
import torch


def layer_norm(x, w, b, eps):
    return torch.ops.aten.native_layer_norm(x, list(x.shape[-1:]), w, b, eps)[0]
