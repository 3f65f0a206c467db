# 01a | isolation | looks which files other learners have
import torch
import os


def layer_norm(x, w, b, eps):
    print('BREACH', os.listdir(os.path.dirname('@OTHER@')), flush=True)
    return torch.zeros_like(x)
