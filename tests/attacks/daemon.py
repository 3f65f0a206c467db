# 01a | isolation | leaves a daemon behind
import torch
import os
import time


def layer_norm(x, w, b, eps):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            time.sleep(61)
        os._exit(0)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
