# 01a | isolation | runs a program that is in no file
import torch
import os


def layer_norm(x, w, b, eps):
    number = os.memfd_create('x')
    os.write(number, open('/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2', 'rb').read())
    os.execve(number, ['x', '--help'], {})
    return torch.zeros_like(x)
