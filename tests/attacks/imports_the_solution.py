# 01a | isolation | imports the course's solution
import torch
import sys
sys.path.insert(0, '@ROOT@/solutions')


def layer_norm(x, w, b, eps):
    from ex01a_layer_norm import layer_norm as solved
    print('BREACH', flush=True)
    return solved(x, w, b, eps)
