# 01a | isolation | reads another learner's file
import torch


def layer_norm(x, w, b, eps):
    print('BREACH', open('@OTHER@').read(), flush=True)
    return torch.zeros_like(x)
