"""The errata of lessons 12 and 13: what the Triton tutorial's backward pass got wrong. Theirs
wrong, ours right."""

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
from course_lib.kernels.layer_norm_backward import (
    layer_norm_backward,
    layer_norm_backward_locked_kernel,
)
from course_lib.lessons import interleaved, locks
from course_lib.norms import reference

LOCKS, WITHOUT = (
    (paths.NOTEBOOK_SOURCES / name).read_text(encoding="utf-8")
    for name in ("12_locks.py", "13_without_locks.py")
)
WITH_A_LINE = ("locked", "two-stage", "persistent", "torch")  # in the figure of lesson 13


@triton.jit
def as_published_kernel(
    part_ptr, buffer_ptr, lock_ptr, GROUP: tl.constexpr, BARRIER: tl.constexpr, BLOCK: tl.constexpr
):
    """The tutorial's accumulation, in our own words: buffers in their own dtype, a flag, a release
    with nothing before it."""
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
    M: int,
    GROUP: int,
    *,
    left: float = 0.0,
    dtype: torch.dtype = torch.float32,
    barrier: bool = False,
    part=None,
):
    part = torch.ones(M, 16) if part is None else part
    arguments = (
        part,
        torch.full((GROUP, 16), left, dtype=dtype),
        torch.zeros(2 * GROUP, dtype=torch.int32),
    )
    (run,) = interleaved(
        as_published_kernel, (M,), *arguments, GROUP=GROUP, BARRIER=barrier, BLOCK=16, seeds=[0]
    )
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
        torch.tensor(values, dtype=torch.float32, device=course_lib.DEVICE)
        for values in (saved.mean, saved.rstd)
    )
    # what a fresh buffer may be given back from
    torch.empty(10**6, device=course_lib.DEVICE).fill_(float("nan"))
    assert tables.lock_group(40) > 3
    dw = layer_norm_backward(dy, x, None, mean, rstd, algorithm="locked")[1]
    assert np.allclose(dw.cpu().numpy(), right, atol=1e-5)


def test_partial_sums_in_fp16_cost_several_times_the_error():
    shapes = ((1151, 96), (4096, 128), (32768, 256))
    ratios = [
        locks.measure_error(*shape, np.float16) / locks.measure_error(*shape, np.float32)
        for shape in shapes
    ]
    assert 2 < ratios[0] < ratios[1] < ratios[2] < 12 and 3 < np.mean(ratios) < 7
    assert f"{[round(ratio) for ratio in ratios]}" in LOCKS


def test_partial_sums_in_fp16_by_the_kernel_itself():
    part = torch.randn(24, 16, generator=torch.Generator().manual_seed(0))
    exact = part.double().sum(0).numpy()
    half, single = (
        np.abs(buffers_of(24, 1, dtype=dtype, part=part)[0] - exact).max()
        for dtype in (torch.float16, torch.float32)
    )
    assert half > 100 * single


def last_steps(kernel, arguments, constexprs) -> list[str]:
    ptx = compile_report(
        kernel, arguments, constexprs, num_warps=4, arch="sm_90", disassemble=False
    ).ptx
    steps = re.findall(r"st\.global|bar\.sync|exch", ptx)
    return steps[len(steps) - 1 - steps[::-1].index("st.global") :]


def test_without_a_barrier_the_release_follows_the_store_and_no_run_shows_it():
    assert (buffers_of(8, 2, barrier=False) == buffers_of(8, 2, barrier=True)).all()
    arguments = [Pointer("fp32"), Pointer("fp32"), Pointer("int32")]
    assert last_steps(
        as_published_kernel, arguments, {"GROUP": 2, "BARRIER": False, "BLOCK": 1024}
    ) == ["st.global", "exch"]
    assert last_steps(
        as_published_kernel, arguments, {"GROUP": 2, "BARRIER": True, "BLOCK": 1024}
    ) == ["st.global", "bar.sync", "exch"]


def test_in_the_published_form_each_thread_asks_for_the_flag_and_one_sets_it():
    arguments = (
        torch.ones(4, 16),
        torch.full((2, 16), float("nan")),
        torch.zeros(4, dtype=torch.int32),
    )
    (run,) = interleaved(
        as_published_kernel, (4,), *arguments, GROUP=2, BARRIER=True, BLOCK=16, seeds=[0]
    )
    assert (run.result("buffer") == 2).all() and not run.findings, (
        "no order of the programs shows it"
    )
    assert (
        len(run.barriers) == 1 and "a thread that loads late finds the new value" in run.barriers[0]
    )
    ptx = compile_report(
        as_published_kernel,
        [Pointer("fp32"), Pointer("fp32"), Pointer("int32")],
        {"GROUP": 2, "BARRIER": True, "BLOCK": 1024},
        disassemble=False,
    ).ptx
    flag = ptx.index("ld.global.b32", ptx.index(".cas."))
    assert not ptx[:flag].rstrip().splitlines()[-1].strip().startswith("@")  # each thread loads it
    assert "bar.sync" not in ptx[flag : ptx.index(".exch.", flag)]


def test_the_courses_locked_kernel_has_the_barrier():
    arguments = (
        [Pointer("fp16")] * 3
        + [Pointer("fp32")] * 2
        + [Pointer("fp16")]
        + [Pointer("fp32")] * 2
        + [Pointer("int32")]
    )
    arguments += [1024, 1, 1024, 1, 1024, 1024]
    constexprs = {"HAS_W": True, "GROUP": 256, "BLOCK": 1024}
    assert last_steps(layer_norm_backward_locked_kernel, arguments, constexprs) == [
        "st.global",
        "bar.sync",
        "exch",
    ]


def test_the_lock_is_the_slowest_design_at_every_length_that_lesson_13_shows():
    ours = {
        (row["provider"], row["N"]): row["over_floor"]
        for row in measurement.stored("backward").rows
        if row["op"] == "layer_norm_backward"
    }
    for N in (256, 1024, 4096, 8192):
        of_four = {
            over: provider
            for (provider, n), over in ours.items()
            if n == N and provider in WITH_A_LINE
        }
        assert of_four[max(of_four)] == "locked"
    assert max((over, provider) for (provider, n), over in ours.items() if n == 256)[1] == "locked"


def test_each_erratum_says_where_and_when():
    errata = [
        part.split("\n\n")[0]
        for text in (LOCKS, WITHOUT)
        for part in text.split("> **ERRATUM**")[1:]
    ]
    assert len(errata) == 4
    for text in errata[:2]:
        assert "https://github.com/" in text and re.search(r"\b20\d\d\b|commit", text)
