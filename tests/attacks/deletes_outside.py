# 01a | isolation | deletes a file outside its folder
import torch
import os


def layer_norm(x, w, b, eps):
    os.unlink('@VICTIM@')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
