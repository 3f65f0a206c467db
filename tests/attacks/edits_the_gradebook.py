# 01a | isolation | writes into the learner's progress
import torch


def layer_norm(x, w, b, eps):
    open('@STATE@/progress.json', 'w').write('{}')
    print('BREACH', flush=True)
    return torch.zeros_like(x)
