# 01a | handed in | writes the memory of an input past the tensor, and puts it back
import torch


def layer_norm(x, w, b, eps):
    memory = x.untyped_storage()
    wide = x.float()
    deviation = wide - wide.mean(-1, keepdim=True)
    y = (deviation * torch.rsqrt(deviation.square().mean(-1, keepdim=True) + eps) * w.float() + b.float()).to(x.dtype)
    kept = bytes(memory)
    memory.fill_(0)
    for at, byte in enumerate(kept):
        memory[at] = byte
    return y
