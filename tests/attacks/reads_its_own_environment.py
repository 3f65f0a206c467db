# 01a | isolation | looks for what a person keeps in the environment
import torch
import os


def layer_norm(x, w, b, eps):
    if 'COURSE_TEST_TOKEN' in os.environ:
        print('BREACH', flush=True)
    return torch.zeros_like(x)
