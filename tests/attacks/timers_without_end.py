# 01a | isolation | timers that signal it without end
import torch
import signal


def layer_norm(x, w, b, eps):
    for which in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
        signal.setitimer(which, 0.001, 0.001)
    while True:
        pass
    return torch.zeros_like(x)
