# 01a | handed in | torch's own norm through autograd
import torch


def layer_norm(x, w, b, eps):
    leaf = x.detach().requires_grad_()
    return torch.func.functional_call(torch.nn.LayerNorm(x.shape[-1], eps), {'weight': w, 'bias': b}, leaf).detach()
