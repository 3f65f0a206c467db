"""Two small kernels with checked results, by which `course doctor` sees whether kernels work on
this machine.

Import this module only after the choice between GPU and interpreter has been made
(``course_lib.MODE``).
"""

from __future__ import annotations

import time
from typing import Any

import torch
import triton
import triton.language as tl

from course_lib import interpreter
from course_lib.base import runtime
from course_lib.base.translation import gettext as _


@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """y = x for N numbers, BLOCK per program; the last program is partly empty."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=mask, other=0.0), mask=mask)


@triton.jit
def centred_sum_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    """Mean and biased variance of one row of N numbers, N < BLOCK. The results are right only if
    masks and reductions both work."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(centred * centred, axis=0) / N)


def run() -> dict[str, object]:
    """Launch both kernels in the chosen mode.

    Returns: "mode"; "triton", the mode in which this process imported Triton ("gpu" or "cpu");
    "wrong", a list of sentences, empty if every value is right; "losses", the faults of this
    Triton's interpreter that the course could not correct; "seconds".
    """
    chosen = runtime.current()
    started = time.perf_counter()
    wrong = [*_find_copy_faults(chosen.device), *_find_sum_faults(chosen.device)]
    return {
        "mode": chosen.mode,
        "triton": runtime.triton_imported_as(),
        "wrong": wrong,
        "losses": interpreter.losses(),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _find_copy_faults(device: str, N: int = 37, BLOCK: Any = 16) -> list[str]:
    x = torch.arange(1, N + 1, dtype=torch.float32, device=device)
    # the elements after the end reveal a store that the mask should have prevented
    y = torch.full((N + BLOCK,), -1.0, device=device)
    copy_kernel[(triton.cdiv(N, BLOCK),)](x, y, N, BLOCK=BLOCK)
    actual, expected = y.cpu(), torch.cat([x.cpu(), torch.full((BLOCK,), -1.0)])
    different = torch.nonzero(actual != expected).flatten().tolist()
    if not different:
        return []
    position = different[0]
    return [
        _(
            "masked copy: y[{position}] is {value:g}, not "
            "{expected:g} ({wrong_count} of {count} wrong)"
        ).format(
            position=position,
            value=actual[position].item(),
            expected=expected[position].item(),
            wrong_count=len(different),
            count=len(actual),
        )
    ]


def _find_sum_faults(device: str, M: int = 3, N: int = 100, BLOCK: Any = 128) -> list[str]:
    # a mean far from 0 makes padding visible that leaks into the variance
    x = (torch.arange(M * N, dtype=torch.float32).reshape(M, N) * 7 % 11 + 3).to(device)
    mean = torch.full((M,), float("nan"), device=device)
    var = torch.full((M,), float("nan"), device=device)
    centred_sum_kernel[(M,)](x, mean, var, x.stride(0), N, BLOCK=BLOCK)
    exact = x.cpu().double()
    faults = []
    for name, actual, expected in (
        ("mean", mean, exact.mean(1)),
        ("variance", var, exact.var(1, correction=0)),
    ):
        if not torch.allclose(actual.cpu().double(), expected, rtol=1e-5, atol=0):
            faults.append(
                _("{name} of rows: {values}, not {expected}").format(
                    name=name,
                    values=actual.cpu().tolist(),
                    expected=[round(value, 4) for value in expected.tolist()],
                )
            )
    return faults
