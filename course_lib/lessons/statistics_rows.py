"""Rows whose mean is large compared with their spread, and functions that run kernels on them, for
the lessons about statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

import course_lib


def make_rows(mean_over_std: float, M: int = 64, N: int = 1000) -> Tensor:
    """Make M rows of N normal numbers with standard deviation 1 and mean ``mean_over_std``: shape
    (M, N), fp32, on the kernels' device.

    The noise is the same at every mean, so two results differ only because of the mean.
    """
    noise = np.random.default_rng(0).standard_normal((M, N))
    return torch.from_numpy((noise + mean_over_std).astype(np.float32)).to(course_lib.DEVICE)


def run_on_rows(kernel: Any, x: Tensor, BLOCK: int, **constexprs: Any) -> tuple[Tensor, Tensor]:
    """Run a kernel (x, mean, var, stride_x, N, BLOCK) with one program per row. Return mean and
    variance of every row: shape (M,), fp32."""
    M, N = x.shape
    mean, var = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    kernel[(M,)](x, mean, var, x.stride(0), N, BLOCK=BLOCK, **constexprs)
    return mean, var


def add_with_running_sums(values: np.ndarray, sums: int) -> np.ndarray:
    """Add up the last axis as a kernel with a block of ``sums`` lanes does: each lane has a running
    sum, and in the end the sums meet in pairs. Shape (..., N), where ``sums``, a power of two,
    divides N; returns shape (...), of the same dtype."""
    lanes = np.add.accumulate(values.reshape(*values.shape[:-1], -1, sums), axis=-2)[..., -1, :]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def find_error(var: Tensor | np.ndarray, x: Tensor | np.ndarray) -> float:
    """Return the largest relative error of the rows' variances. The true ones are computed in
    float64 from the stored numbers."""
    var, x = (
        np.asarray(a.cpu() if isinstance(a, Tensor) else a, dtype=np.float64) for a in (var, x)
    )
    true = x.var(axis=-1)
    return float((np.abs(var - true) / true).max())
