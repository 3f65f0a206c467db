# 01a | isolation | reads the environment of the process that grades
import torch


def layer_norm(x, w, b, eps):
    print('BREACH', open('/proc/@PARENT@/environ').read(), flush=True)
    return torch.zeros_like(x)
