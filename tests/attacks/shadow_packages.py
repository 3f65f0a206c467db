# 01a | isolation | puts a module among the installed packages
import torch
import os
import sys


def layer_norm(x, w, b, eps):
    for folder in sys.path:
        if os.path.isdir(folder):
            with open(os.path.join(folder, 'course_attack_probe.py'), 'w'):
                print('BREACH', flush=True)
    return torch.zeros_like(x)
