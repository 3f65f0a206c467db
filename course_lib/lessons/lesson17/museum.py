"""Lesson 17: launch kernels with bugs that shipped, and measure their error against fp64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

import course_lib
from course_lib import catalog
from course_lib.base.translation import mark as N_
from course_lib.grading.public import check, list_cases

EPS = 1e-5
_M = 6


def normal(*shape: int, mean: float = 0.0, seed: int = 0) -> Tensor:
    """Return normal numbers around ``mean``, the same on every device."""
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean).to(
        course_lib.DEVICE
    )


# the four inputs that the page asks about; D is transposed, so neighbouring columns are not
# adjacent in memory
INPUTS = {
    N_("A: N = 64, mean 10"): normal(_M, 64, mean=10.0),
    N_("B: N = 60, mean 10"): normal(_M, 60, mean=10.0),
    N_("C: N = 60, mean 3000"): normal(_M, 60, mean=3000.0),
    N_("D: N = 64, transposed"): normal(64, _M).t(),
}


@triton.jit
def norm_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    """The right kernel of lesson 01: a packed matrix, one program per row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    d = tl.where(mask, x - tl.sum(x) / N, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d) / N + eps)
    tl.store(y_ptr + row * N + cols, d * rstd, mask=mask)


def launch(kernel: Any, x: Tensor) -> Tensor:
    """Return y of a kernel without w and b.

    The kernel takes (x, y, N, eps) and gets a packed copy of x; or, if it has strides, (x, y, row
    stride, column stride, N, eps).
    """
    M, N = x.shape
    y = torch.full((M, N), float("nan"), device=x.device)
    block = triton.next_power_of_2(N)
    if "stride_col" in kernel.arg_names:
        kernel[(M,)](x, y, *x.stride(), N, EPS, BLOCK=block)
    else:
        kernel[(M,)](x.contiguous(), y, N, EPS, BLOCK=block)
    return y


def expect(x: Tensor) -> Tensor:
    """Return y in fp64."""
    return F.layer_norm(x.double(), x.shape[-1:], eps=EPS)


def find_error(kernel: Any, x: Tensor) -> float:
    """Return the largest error of the kernel's y; NaN if y has a NaN."""
    return (launch(kernel, x).double() - expect(x)).abs().max().item()


@dataclass(frozen=True)
class Met:
    """A kernel that the grader gave to a test of exercise 17a.

    ``caught`` tells whether the test raised AssertionError; it is None if the test did not run.
    """

    is_right: bool
    caught: bool | None


def list_met(exercise_id: str) -> dict[str, list[Met]]:
    """Check the learner's file, and return for each of its tests the kernels that it met, in the
    grader's order."""
    exercise = catalog.get(exercise_id)
    verdict = check(exercise)
    passed = {
        case.name: case.status == "pass" for case in verdict.cases if case.status != "not run"
    }
    kernels_by_test: dict[str, list[Met]] = {test: [] for test in exercise.entry_points}
    for case in list_cases(exercise_id):
        right = bool(getattr(case, "is_right", False))
        well = passed.get(case.name)
        kernels_by_test[case.name.partition(":")[0]].append(
            Met(right, None if well is None else well != right)
        )
    return kernels_by_test


def tabulate(
    kernels: Mapping[str, Any], inputs: Mapping[str, Tensor] = INPUTS
) -> dict[str, dict[str, float]]:
    """Return the largest error of y for each kernel and each input."""
    return {
        bug: {name: find_error(kernel, x) for name, x in inputs.items()}
        for bug, kernel in kernels.items()
    }
