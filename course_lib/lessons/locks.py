"""Launches of lesson 12: four programs that add to one total, and the learner's file of 12a.

Program p adds 10 to the power p, so the digits of the total show which programs were counted. With
all four it is 1111.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.lessons.pictures.schedule.run import Interleaving, interleaved
from course_lib.lessons.pictures.schedule.widget import ScheduleLaunch, learners_file

PARTS = (1.0, 10.0, 100.0, 1000.0)
COLUMNS = 4  # columns of a row


@triton.jit
def locked_add_kernel(part_ptr, total_ptr, lock_ptr):
    part = tl.load(part_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.store(total_ptr, total + part)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def kept_lock_kernel(part_ptr, total_ptr, lock_ptr):
    part = tl.load(part_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.store(total_ptr, total + part)


@triton.jit
def early_release_kernel(part_ptr, total_ptr, lock_ptr):
    part = tl.load(part_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(total_ptr, total + part)


@triton.jit
def relaxed_release_kernel(part_ptr, total_ptr, lock_ptr):
    part = tl.load(part_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.store(total_ptr, total + part)
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


@triton.jit
def row_kernel(part_ptr, total_ptr, lock_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, total + part)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def row_with_barrier_kernel(part_ptr, total_ptr, lock_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, total + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def each_asks_kernel(part_ptr, total_ptr, lock_ptr, flag_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(flag_ptr) == 0:
        tl.store(flag_ptr, 1)
    else:
        row += tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def barrier_between_kernel(part_ptr, total_ptr, lock_ptr, flag_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    written = tl.load(flag_ptr)
    tl.debug_barrier()
    if written == 0:
        tl.store(flag_ptr, 1)
    else:
        row += tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def one_asks_kernel(part_ptr, total_ptr, lock_ptr, flag_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.load(part_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.atomic_xchg(flag_ptr, 1) == 1:
        row += tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def one_number_kernel(part_ptr, total_ptr, lock_ptr, flag_ptr):
    part = tl.load(part_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(flag_ptr) == 0:
        tl.store(flag_ptr, 1)
    else:
        part += tl.load(total_ptr)
    tl.store(total_ptr, part)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def grouped_kernel(part_ptr, buffer_ptr, lock_ptr, flag_ptr, GROUP: tl.constexpr):
    part = tl.load(part_ptr + tl.program_id(0))
    group = tl.program_id(0) % GROUP
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    if tl.load(flag_ptr + group) == 0:
        tl.store(flag_ptr + group, 1)
    else:
        part += tl.load(buffer_ptr + group)
    tl.store(buffer_ptr + group, part)
    tl.atomic_xchg(lock_ptr + group, 0)


def four_programs(kernel: Any, total: float = 0.0) -> ScheduleLaunch:
    """Return a launch of four programs that add 1, 10, 100 and 1000 to ``total``. For a kernel with
    BLOCK, all are rows of COLUMNS."""
    takes = list(inspect.signature(kernel.fn).parameters)
    columns = COLUMNS if "BLOCK" in takes else 1
    part = torch.tensor(PARTS)[:, None].expand(-1, columns).contiguous()
    numbers = [
        torch.zeros(1, dtype=torch.int32) for name in ("lock_ptr", "flag_ptr") if name in takes
    ]
    constants = {"BLOCK": columns} if columns > 1 else {}
    return ScheduleLaunch(
        kernel, (len(PARTS),), [part, torch.full((columns,), total), *numbers], constants
    )


def run_orders(launch: ScheduleLaunch, seeds: Iterable[int] = range(40)) -> list[Interleaving]:
    """Run the launch once per seed. Each seed draws another order of the programs' operations."""
    return interleaved(launch.kernel, launch.grid, *launch.arguments, seeds=seeds, **launch.named)


def list_totals(runs: Iterable[Interleaving]) -> list[int]:
    """Return for each run the final value of the total's first column."""
    return [int(run.result("total").flat[0]) for run in runs]


def make_buffers(rows: int, group: int, old_content: float) -> list[torch.Tensor]:
    """Return the arguments of :func:`grouped_kernel`: parts, ``group`` buffers with the old content
    ``old_content``, their locks and their flags."""
    zeros = torch.zeros(group, dtype=torch.int32)
    return [torch.tensor(PARTS[:rows]), torch.full((group,), old_content), zeros, zeros.clone()]


def your_repair() -> ScheduleLaunch:
    """Return a launch of the first kernel of the learner's 12a: four rows of four columns, two
    buffers. Each run reads the file again.

    The rows of x hold 1, 10, 100 and 1000; mean is 0 and rstd is 1. So dw has the totals of the
    lesson. The buffers start as NaN.
    """
    M, N, group = len(PARTS), COLUMNS, 2
    x = torch.tensor(PARTS)[:, None].expand(M, N).contiguous()
    buffers = [torch.full((group, N), float("nan")) for _ in range(2)]
    arguments = [
        torch.ones(M, N),
        x,
        torch.zeros(M),
        torch.ones(M),
        *buffers,
        torch.zeros(2 * group, dtype=torch.int32),
    ]
    return ScheduleLaunch(
        learners_file("12a"),
        (M,),
        [*arguments, N, 1, N, N],
        {"GROUP": group, "BLOCK": triton.next_power_of_2(N)},
    )


_FORMS = {
    "load and store": N_("each thread loads"),
    "load, barrier and store": N_("a barrier between"),
    "exchange": N_("one asks"),
}  # the names of the lesson, by the forms of the stored measurement


def describe_late_warps() -> str:
    """Write how many launches of each form were wrong, with and without warps that come late to the
    flag."""
    stored = measurement.stored("lock_race")
    columns, num_warps = stored.rows[0]["N"], stored.rows[0]["num_warps"]
    words = _("{columns} columns, {warps} warps, {label}: launches with a wrong sum")
    lines = [
        words.format(columns=columns, warps=num_warps, label=stored.label()),
        f"{'':20} {_('late warps'):12} {_('no wait')}",
    ]
    for form, name in _FORMS.items():
        late, ordinary = (_find_row(stored, form, columns, late=late) for late in (True, False))
        counts = (
            _("{wrong} of {runs}").format(wrong=row["wrong"], runs=row["runs"])
            for row in (late, ordinary)
        )
        lines.append("{:20} {:12} {}".format(_(name), *counts))
    return "\n".join(lines)


def compare_forms() -> dict[str, str]:
    """Return the stored measurement's device, and how much longer the repaired forms take than the
    first: short rows and long ones."""
    stored = measurement.stored("lock_race")
    short, long = sorted({row["N"] for row in stored.rows})

    def compare(form: str, columns: int) -> str:
        ours, first_form = (
            _find_row(stored, name, columns, late=False)["us"] for name in (form, "load and store")
        )
        return f"{ours / first_form:.2f}"

    return {
        "device": stored.device,
        "exchange_short": compare("exchange", short), "exchange_long": compare("exchange", long),
        "barrier_short": compare("load, barrier and store", short),
        "barrier_long": compare("load, barrier and store", long),
    }  # fmt: skip


def _find_row(stored: Measurement, form: str, columns: int, late: bool) -> dict:
    return next(
        row
        for row in stored.rows
        if row["form"] == form and row["N"] == columns and bool(row["wait_us"]) == late
    )


def list_last_steps(kernel: Any, BLOCK: int = 1024) -> list[str]:
    """List the stores, barriers and atomics of a kernel's PTX for an H100, from the last store on,
    in order."""
    steps = re.findall(r"st\.global|bar\.sync|atom\.\S*(?:exch|cas)", _compile(kernel, BLOCK))
    last_store = len(steps) - 1 - steps[::-1].index("st.global")
    return [_shorten(step) for step in steps[last_store:]]


def list_steps_of_the_flag(kernel: Any, BLOCK: int = 1024) -> list[str]:
    """List what a kernel's PTX for an H100 does with single numbers, and its barriers, from the
    lock taken to the last barrier, in order."""
    ptx = _compile(kernel, BLOCK)
    locked = ptx[ptx.index("bra", ptx.index("ld.shared", ptx.index(".cas."))) :]
    steps = re.findall(
        r"(?:ld|st)\.(?:global|shared)(?=\.b32)|bar\.sync|atom\.\S*(?:exch|cas)", locked
    )
    # without the last barrier, and the exchange that gives the lock back
    return [_shorten(step) for step in steps[:-2]]


def _compile(kernel: Any, BLOCK: int) -> str:
    flags = [Pointer("int32")] if "flag_ptr" in kernel.arg_names else []
    arguments = [Pointer("fp32"), Pointer("fp32"), Pointer("int32"), *flags]
    return compile_report(
        kernel, arguments, {"BLOCK": BLOCK}, num_warps=4, arch="sm_90", disassemble=False
    ).ptx


def _shorten(step: str) -> str:
    return re.sub(r"atom\..*\.", "atom ... ", step)


def measure_error(M: int, GROUP: int, dtype: Any, columns: int = 96) -> float:
    """Return the root-mean-square error of an fp16 dw whose M rows are added, one after another,
    into GROUP buffers of ``dtype``."""
    rng = np.random.default_rng(0)
    parts = (0.1 * rng.standard_normal((M, columns)) * rng.standard_normal((M, columns))).astype(
        np.float32
    )
    buffers = np.zeros((GROUP, columns), dtype)
    for first_row in range(0, M, GROUP):
        rows = parts[first_row : first_row + GROUP]
        buffers[: len(rows)] = (buffers[: len(rows)].astype(np.float32) + rows).astype(dtype)
    dw = buffers.astype(np.float32).sum(axis=0).astype(np.float16)
    return float(np.sqrt(((dw - parts.sum(axis=0, dtype=np.float64)) ** 2).mean()))
