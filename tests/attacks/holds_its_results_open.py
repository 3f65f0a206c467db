# 01a | isolation | goes on to write in a thread while the next case runs
import torch
import pathlib
import threading


def write():
    while True:
        for given in pathlib.Path().glob('*.in'):
            given.with_suffix('.out').write_bytes(bytes(given.stat().st_size))



def layer_norm(x, w, b, eps):
    threading.Thread(target=write, daemon=True).start()
    return torch.zeros_like(x)
