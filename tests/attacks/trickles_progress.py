# 01a | isolation | reports a case a second without doing any
import torch
import pathlib
import time


def layer_norm(x, w, b, eps):
    for number in range(100):
        time.sleep(0.5)
        pathlib.Path(f'{number:02}.begin').touch()
    return torch.zeros_like(x)
