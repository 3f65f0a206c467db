# 01a | isolation | works in the inputs, past the versions that PyTorch counts, and puts everything back
import torch


def layer_norm(x, w, b, eps):
    y = torch.nn.functional.layer_norm(x.float(), x.shape[-1:], w.float(), b.float(), eps).to(x.dtype)
    kept = x.clone()
    x.data.mul_(2)
    x.data.copy_(kept)
    return y
