# 01a | isolation | starts another program and leaves it behind
import torch
import subprocess


def layer_norm(x, w, b, eps):
    subprocess.Popen(['sleep', '61'], start_new_session=True)
    print('BREACH', flush=True)
    return torch.zeros_like(x)
