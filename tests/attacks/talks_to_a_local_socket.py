# 01a | isolation | connects to another program's socket
import torch
import socket


def layer_norm(x, w, b, eps):
    socket.socket(socket.AF_UNIX).connect('\0@ABSTRACT@')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
