# 01a | isolation | opens its own descriptors, memory and environment anew
import torch
import os


def layer_norm(x, w, b, eps):
    for name in ('mem', 'environ', 'maps', 'status', 'root/etc/passwd', 'cwd/../../job.json', 'task'):
        try:
            os.listdir('/proc/self/task') if name == 'task' else open('/proc/self/' + name, 'rb')
        except OSError:
            continue
        print('BREACH', flush=True)
    return torch.zeros_like(x)
