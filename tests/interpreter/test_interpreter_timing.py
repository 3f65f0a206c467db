"""autotune and do_bench on a machine without a GPU: they run, and their times are labelled for what
they are."""

from __future__ import annotations

import time

import pytest
import torch
import triton
import triton.language as tl

import course_lib
from course_lib.interpreter.timing import InterpreterTiming

pytestmark = pytest.mark.skipif(course_lib.MODE == "gpu", reason="about the CPU interpreter")


@triton.autotune([triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], key=["n"])
@triton.jit
def tuned_copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def test_an_autotuned_kernel_runs_and_gives_the_right_values():
    x, y = torch.arange(20.0), torch.empty(20)
    with pytest.warns(InterpreterTiming, match="not a GPU's"):
        tuned_copy_kernel[lambda meta: (triton.cdiv(20, meta["BLOCK"]),)](x, y, 20)
    assert torch.equal(x, y)
    assert tuned_copy_kernel.best_config.kwargs["BLOCK"] in (8, 16)


def test_do_bench_measures_the_host_and_says_so():
    with pytest.warns(InterpreterTiming, match="the CPU interpreter's"):
        milliseconds = triton.testing.do_bench(
            lambda: time.sleep(0.002), warmup=2, rep=10, return_mode="median"
        )
    assert 2.0 <= milliseconds < 100.0
