# 01a | isolation | becomes another program
import torch
import os


def layer_norm(x, w, b, eps):
    os.execv('/bin/sh', ['sh', '-c', 'echo BREACH; exec sleep 61'])
    return torch.zeros_like(x)
