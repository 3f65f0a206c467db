# 01a | isolation | makes a second name for a file outside its folder
import torch
import os


def layer_norm(x, w, b, eps):
    os.link('@VICTIM@', 'mine')
    open('mine', 'a').write('changed')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
