# 01a | isolation | looks for the oracle among all objects
import torch
import gc


def layer_norm(x, w, b, eps):
    for thing in gc.get_objects():
        if type(thing).__name__ in ('Expected', 'Plan', 'Verdict', 'Judged'):
            print('BREACH', flush=True)
    return torch.zeros_like(x)
