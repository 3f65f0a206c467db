# 01a | isolation | overwrites a file outside its folder
import torch


def layer_norm(x, w, b, eps):
    open('@VICTIM@', 'w').write('changed')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
