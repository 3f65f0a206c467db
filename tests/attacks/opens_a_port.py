# 01a | isolation | offers a service
import torch
import socket


def layer_norm(x, w, b, eps):
    door = socket.socket()
    door.bind(('127.0.0.1', 0))
    door.listen()
    print('BREACH', flush=True)
    return torch.zeros_like(x)
