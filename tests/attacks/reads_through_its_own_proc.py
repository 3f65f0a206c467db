# 01a | isolation | opens its own descriptors, memory and environment anew
import torch
import os


def layer_norm(x, w, b, eps):
    for name in ('fd/1', 'fd/0', 'mem', 'environ', 'maps', 'cwd/../x', 'root/etc/passwd', 'task'):
        try:
            os.listdir('/proc/self/task') if name == 'task' else open('/proc/self/' + name, 'rb')
        except OSError:
            continue
        print('BREACH', flush=True)
    return torch.zeros_like(x)
