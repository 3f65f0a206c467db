# 01a | isolation | reads the course's solution and runs it
import torch


def layer_norm(x, w, b, eps):
    space = {}
    exec(open('@ROOT@/solutions/ex01a_layer_norm.py').read(), space)
    print('BREACH', flush=True)
    return space['layer_norm'](x, w, b, eps)
