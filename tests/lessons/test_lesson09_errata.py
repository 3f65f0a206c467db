"""The errata of lesson 09: what the Triton tutorial's backward pass gets wrong. Theirs wrong, ours right."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import course_lib
from course_lib.base import paths
from course_lib.bench import measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm_backward import layer_norm_backward, layer_norm_backward_locked_kernel
from course_lib.lessons import interleaved
from course_lib.lessons.figures import lesson09
from course_lib.norms import reference

LESSON = (paths.NOTEBOOK_SOURCES / "09_backward_dw_db.py").read_text(encoding="utf-8")


@triton.jit
def as_published_kernel(
    part_ptr, buffer_ptr, lock_ptr, GROUP: tl.constexpr, BARRIER: tl.constexpr, BLOCK: tl.constexpr
):
    """The tutorial's accumulation, in our own words: buffers in their own dtype, a flag, a release with nothing before it."""
    cols = tl.arange(0, BLOCK)
    group = tl.program_id(0) % GROUP
    part = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols).to(buffer_ptr.dtype.element_ty)
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    if tl.load(lock_ptr + GROUP + group) == 0:
        tl.atomic_xchg(lock_ptr + GROUP + group, 1)
    else:
        part += tl.load(buffer_ptr + group * BLOCK + cols)
    tl.store(buffer_ptr + group * BLOCK + cols, part)
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def buffers_of(
    M: int, GROUP: int, *, left: float = 0.0, dtype: torch.dtype = torch.float32, barrier: bool = False, part=None
):
    part = torch.ones(M, 16) if part is None else part
    arguments = part, torch.full((GROUP, 16), left, dtype=dtype), torch.zeros(2 * GROUP, dtype=torch.int32)
    (run,) = interleaved(as_published_kernel, (M,), *arguments, GROUP=GROUP, BARRIER=barrier, BLOCK=16, seeds=[0])
    assert run.complete and not run.findings
    return run.result("buffer").astype(np.float64)


@pytest.mark.parametrize(("M", "GROUP"), [(1, 4), (3, 8), (7, 8)])
def test_with_fewer_rows_than_buffers_all_buffers_are_too_many(M, GROUP):
    held = buffers_of(M, GROUP, left=float("nan"))
    assert np.isnan(held.sum(axis=0)).all()
    assert (held[: min(M, GROUP)].sum(axis=0) == M).all()


@pytest.mark.parametrize(("M", "GROUP"), [(8, 8), (9, 8)])
def test_with_rows_enough_nobody_notices(M, GROUP):
    assert (buffers_of(M, GROUP, left=float("nan")).sum(axis=0) == M).all()


def test_the_courses_locked_kernel_uses_no_more_buffers_than_rows():
    x, dy = torch.randn(3, 40), torch.randn(3, 40)
    saved, right = reference.layer_norm(x), reference.layer_norm_vjp(dy, x).dw
    x, dy = x.to(course_lib.DEVICE), dy.to(course_lib.DEVICE)
    mean, rstd = (
        torch.tensor(values, dtype=torch.float32, device=course_lib.DEVICE) for values in (saved.mean, saved.rstd)
    )
    torch.empty(10**6, device=course_lib.DEVICE).fill_(float("nan"))  # what a fresh buffer may be given back from
    assert tables.lock_group(40) > 3
    dw = layer_norm_backward(dy, x, None, mean, rstd, algorithm="locked")[1]
    assert np.allclose(dw.cpu().numpy(), right, atol=1e-5)


def rms_error(M: int, GROUP: int, dtype: type) -> float:
    """Of dw in fp16 over 96 columns, its parts added row by row into buffers of ``dtype``."""
    rng = np.random.default_rng(0)
    parts = (0.1 * rng.standard_normal((M, 96)) * rng.standard_normal((M, 96))).astype(np.float32)
    held = np.zeros((GROUP, 96), dtype)
    for first in range(0, M, GROUP):
        rows = parts[first : first + GROUP]
        held[: len(rows)] = (held[: len(rows)].astype(np.float32) + rows).astype(dtype)
    dw = held.astype(np.float32).sum(axis=0).astype(np.float16)
    return float(np.sqrt(((dw - parts.sum(axis=0, dtype=np.float64)) ** 2).mean()))


def test_partial_sums_in_fp16_cost_several_times_the_error():
    ratios = [
        rms_error(M, GROUP, np.float16) / rms_error(M, GROUP, np.float32)
        for M, GROUP in ((1151, 96), (4096, 128), (32768, 256))
    ]
    assert 2 < ratios[0] < ratios[1] < ratios[2] < 12 and 3 < np.mean(ratios) < 7
    assert f"{[round(ratio) for ratio in ratios]}" in LESSON


def test_partial_sums_in_fp16_by_the_kernel_itself():
    part = torch.randn(24, 16, generator=torch.Generator().manual_seed(0))
    exact = part.double().sum(0).numpy()
    half, single = (
        np.abs(buffers_of(24, 1, dtype=dtype, part=part)[0] - exact).max() for dtype in (torch.float16, torch.float32)
    )
    assert half > 100 * single


def last_steps(kernel, arguments, constexprs) -> list[str]:
    ptx = compile_report(kernel, arguments, constexprs, num_warps=4, arch="sm_90", disassemble=False).ptx
    steps = re.findall(r"st\.global|bar\.sync|exch", ptx)
    return steps[len(steps) - 1 - steps[::-1].index("st.global") :]


def test_without_a_barrier_the_release_follows_the_store_and_no_run_shows_it():
    assert (buffers_of(8, 2, barrier=False) == buffers_of(8, 2, barrier=True)).all()
    arguments = [Pointer("fp32"), Pointer("fp32"), Pointer("int32")]
    assert last_steps(as_published_kernel, arguments, {"GROUP": 2, "BARRIER": False, "BLOCK": 1024}) == [
        "st.global",
        "exch",
    ]
    assert last_steps(as_published_kernel, arguments, {"GROUP": 2, "BARRIER": True, "BLOCK": 1024}) == [
        "st.global",
        "bar.sync",
        "exch",
    ]


def test_the_courses_locked_kernel_has_the_barrier():
    arguments = (
        [Pointer("fp16")] * 3 + [Pointer("fp32")] * 2 + [Pointer("fp16")] + [Pointer("fp32")] * 2 + [Pointer("int32")]
    )
    arguments += [1024, 1, 1024, 1, 1024, 1024]
    constexprs = {"HAS_W": True, "GROUP": 256, "BLOCK": 1024}
    assert last_steps(layer_norm_backward_locked_kernel, arguments, constexprs) == ["st.global", "bar.sync", "exch"]


def test_the_lock_is_the_slowest_design_for_short_rows():
    for N, figures in lesson09.PEERS.items():
        assert (max(figures, key=figures.get) == "tutorial") == (N <= 1024)
    ours = {
        (row["provider"], row["N"]): row["over_floor"]
        for row in measurement.stored("backward").rows
        if row["op"] == "layer_norm_backward"
    }
    for N in (256, 1024):
        assert max((over, provider) for (provider, n), over in ours.items() if n == N)[1] == "locked"


def test_the_lesson_marks_four():
    assert LESSON.count("> **ERRATUM** (") == 4 and "four errata" in LESSON
