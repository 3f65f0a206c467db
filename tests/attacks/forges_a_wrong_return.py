# 01a | isolation | reports a wrong return of no case
import torch
import os
import pathlib


def layer_norm(x, w, b, eps):
    pathlib.Path('import.error').write_text('{"type": "WrongReturn", "text": "", "fault": null, "line": null, "lost": false}')
    os._exit(0)
    return torch.zeros_like(x)
