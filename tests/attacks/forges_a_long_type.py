# 01a | isolation | reports an exception with a name of 60,000 characters
import torch
import json
import os
import pathlib


def layer_norm(x, w, b, eps):
    report = {'type': 'A' * 60_000, 'text': 'a', 'fault': None, 'line': 10**300, 'column': 5, 'end_column': -5, 'lost': False}
    pathlib.Path('00.error').write_text(json.dumps(report))
    os._exit(0)
    return torch.zeros_like(x)
