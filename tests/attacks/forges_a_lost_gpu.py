# 01a | isolation | says with 60,000 characters that a GPU was lost
import torch
import json
import os
import pathlib


def layer_norm(x, w, b, eps):
    report = {'type': 'A', 'text': 'a' * 60_000, 'fault': None, 'line': None, 'lost': True}
    pathlib.Path('00.error').write_text(json.dumps(report))
    os._exit(0)
    return torch.zeros_like(x)
