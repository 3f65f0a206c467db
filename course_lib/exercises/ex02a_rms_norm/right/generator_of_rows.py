"""Rows come out of a generator, a context manager of the file's own stands around them, and an assert at the end."""

import contextlib
import itertools

import torch


@contextlib.contextmanager
def wide(*tensors):
    yield [t.to(torch.float64) for t in tensors]


def rows_of(x):
    yield from x.reshape(-1, x.shape[-1])


def rms_norm(x: "torch.Tensor", w: "torch.Tensor", eps: float) -> "torch.Tensor":
    y = torch.empty_like(x).reshape(-1, x.shape[-1])
    for number, row in zip(itertools.count(), rows_of(x)):
        with wide(row, w) as (r, weight):
            y[number] = r / torch.sqrt(torch.dot(r, r) / r.numel() + eps) * weight
    y = y.view(x.shape)
    assert y.dtype is x.dtype, f"{y.dtype} for {x.dtype}"
    return y
