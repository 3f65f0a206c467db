"""Means by einsum, a walrus, a lambda, a dictionary and a raise."""

import math

import torch as T

_DTYPES = {T.float16: T.float32, T.bfloat16: T.float32}
_DTYPES.update({T.float32: T.float32})
row_mean = lambda rows: T.einsum("mn->m", rows)[:, None] / rows.size(1)  # noqa: E731


def layer_norm(x, w, b, eps):
    if (N := x.shape[-1]) != len(w):
        raise ValueError(f"w has {len(w)} elements, a row {N}")
    try:
        wide = _DTYPES[x.dtype]
    except KeyError as missing:
        raise TypeError(f"no such dtype: {missing}") from None
    rows = x.reshape(math.prod(x.shape[:-1]), N).to(wide)
    centred = rows - row_mean(rows)
    scale = T.linalg.vector_norm(centred, dim=1, keepdim=True).square().div(N).add(eps).sqrt().reciprocal()
    y = T.mul(centred, scale)
    return (y * w.to(wide) + b.to(wide)).to(x.dtype).view(x.shape)
