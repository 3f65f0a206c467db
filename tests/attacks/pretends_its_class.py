# 01a | isolation | an object that says it is a tensor
import torch
class Pretender:
    __class__ = torch.Tensor
    shape = [3, 8]
    dtype = torch.float32

    def __array__(self, *rest):
        raise SystemExit


def layer_norm(x, w, b, eps):
    return Pretender()
