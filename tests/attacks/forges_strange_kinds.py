# 01a | isolation | reports faults of kinds that there are not
import torch
import json
import os
import pathlib


def layer_norm(x, w, b, eps):
    for number, given in enumerate(sorted(pathlib.Path().glob('*.in'))):
        kind = ('reads', 'race', 'order', 'deadlock', 'no barrier', '', 'a' * 9000, 'cas')[number % 8]
        fault = {'kind': kind, 'tensor': ('x', 'y', '')[number % 3], 'row': True, 'line': 2**80}
        report = {'type': 'Excess', 'text': 'a' * 9000, 'fault': fault, 'line': True, 'lost': False}
        given.with_suffix('.error').write_text(json.dumps(report))
        given.with_suffix('.out').write_bytes(bytes(given.stat().st_size))
    os._exit(0)
    return torch.zeros_like(x)
