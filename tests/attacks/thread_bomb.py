# 01a | isolation | starts threads without end
import torch
import threading
import time


def layer_norm(x, w, b, eps):
    while True:
        try:
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        except RuntimeError:
            pass
    return torch.zeros_like(x)
