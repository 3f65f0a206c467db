# 01a | isolation | opens the reference for writing
import torch


def layer_norm(x, w, b, eps):
    open('@ROOT@/course_lib/norms/reference.py', 'a').close()
    print('BREACH', flush=True)
    return torch.zeros_like(x)
