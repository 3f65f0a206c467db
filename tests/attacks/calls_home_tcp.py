# 01a | isolation | opens a connection
import torch
import socket


def layer_norm(x, w, b, eps):
    socket.create_connection(('127.0.0.1', @TCP@), timeout=1).sendall(b'hello')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
