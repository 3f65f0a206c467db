# 01a | isolation | opens the memory of the process that grades
import torch


def layer_norm(x, w, b, eps):
    print('BREACH', open('/proc/@PARENT@/mem', 'rb'), flush=True)
    return torch.zeros_like(x)
