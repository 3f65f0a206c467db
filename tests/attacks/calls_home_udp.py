# 01a | isolation | sends a datagram
import torch
import socket


def layer_norm(x, w, b, eps):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', @UDP@))
    print('BREACH', flush=True)
    return torch.zeros_like(x)
