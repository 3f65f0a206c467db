# 01a | isolation | raises its limits, then takes all memory
import torch
import resource


def layer_norm(x, w, b, eps):
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        try:
            resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (OSError, ValueError):
            continue
        print('BREACH', flush=True)
    return torch.zeros_like(x)
