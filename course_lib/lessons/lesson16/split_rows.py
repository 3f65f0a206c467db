"""Launches of lesson 16: several programs share a row and exchange their partial sums. Also:
compiler reports and times for long rows.

There are two rows of three chunks. The parts of row 0 are 1, 10 and 100, those of row 1 are 2, 20
and 200. So the digits of a total show which chunks were counted; the right totals are 111 and 222.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl

import course_lib
from course_lib.bench import grid, long_rows, measurement
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS
from course_lib.compiler import CompileReport, Pointer, compile_report
from course_lib.kernels.layer_norm import layer_norm_resident_kernel
from course_lib.lessons.pictures.schedule.run import Interleaving, interleaved
from course_lib.lessons.pictures.schedule.widget import ScheduleLaunch

CHUNKS = 3
PARTS = ((1, 10, 100), (2, 20, 200))
# (M, N) by the tag of the measurement
SHAPES = {" M=many": (1024, 65536), " M=16": (16, 262144), " M=1": (1, 262144)}
ROOM = (6, 3, 2)  # numbers of programs that may be unfinished at a time


@triton.jit
def by_ticket_kernel(part_ptr, total_ptr, word_ptr, ticket_ptr, CHUNKS: tl.constexpr):
    place = tl.atomic_add(ticket_ptr, 1)
    row = place // CHUNKS
    part = tl.load(part_ptr + place)
    tl.atomic_xchg(word_ptr + place, -part, sem="relaxed")
    total = 0
    for chunk in range(CHUNKS):
        word = tl.load(word_ptr + row * CHUNKS + chunk, volatile=True)
        while word >= 0:
            word = tl.load(word_ptr + row * CHUNKS + chunk, volatile=True)
        total -= word
    tl.store(total_ptr + place, total)


@triton.jit
def by_program_id_kernel(part_ptr, total_ptr, word_ptr, ticket_ptr, CHUNKS: tl.constexpr):
    place = tl.program_id(0)
    row = place // CHUNKS
    part = tl.load(part_ptr + place)
    tl.atomic_xchg(word_ptr + place, -part, sem="relaxed")
    total = 0
    for chunk in range(CHUNKS):
        word = tl.load(word_ptr + row * CHUNKS + chunk, volatile=True)
        while word >= 0:
            word = tl.load(word_ptr + row * CHUNKS + chunk, volatile=True)
        total -= word
    tl.store(total_ptr + place, total)


@triton.jit
def flag_apart_kernel(part_ptr, total_ptr, value_ptr, flag_ptr, CHUNKS: tl.constexpr):
    chunk = tl.program_id(0)
    tl.store(value_ptr + chunk, tl.load(part_ptr + chunk))
    tl.atomic_xchg(flag_ptr + chunk, 1, sem="relaxed")
    total = 0
    for k in range(CHUNKS):
        while tl.load(flag_ptr + k, volatile=True) == 0:
            pass
        total += tl.load(value_ptr + k)
    tl.store(total_ptr + chunk, total)


@triton.jit
def own_chunk_first_kernel(part_ptr, total_ptr, CHUNKS: tl.constexpr):
    chunk = tl.program_id(0)
    total = 0.0
    for i in range(CHUNKS):
        total += tl.load(part_ptr + (chunk + i) % CHUNKS)
    tl.store(total_ptr + chunk, total)


def two_rows(kernel: Any) -> ScheduleLaunch:
    """Return a launch of six programs of ``kernel`` (parts, totals, words, ticket, CHUNKS): two
    rows of three chunks."""
    words = torch.zeros(len(PARTS), CHUNKS, dtype=torch.int32)
    part = torch.tensor(PARTS, dtype=torch.int32)
    arguments = [part, torch.zeros(len(PARTS), CHUNKS), words, torch.zeros(1, dtype=torch.int32)]
    return ScheduleLaunch(kernel, (part.numel(),), arguments, {"CHUNKS": CHUNKS})


def run_two_rows(kernel: Any, room: int, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """Run the launch of :func:`two_rows` once per seed, with at most ``room`` unfinished programs
    at a time."""
    launch = two_rows(kernel)
    return interleaved(
        kernel, launch.grid, *launch.arguments, seeds=seeds, resident=room, **launch.named
    )


def run_flag_apart(seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """Run :func:`flag_apart_kernel` on row 0, once per seed."""
    part, zeros = torch.tensor(PARTS[0], dtype=torch.int32), torch.zeros(CHUNKS, dtype=torch.int32)
    return interleaved(
        flag_apart_kernel,
        (CHUNKS,),
        part,
        zeros,
        zeros.clone(),
        zeros.clone(),
        seeds=seeds,
        CHUNKS=CHUNKS,
    )


def add_up(kernel: Any, parts: Sequence[float]) -> list[float]:
    """Return the fp32 total that each program of ``kernel`` (parts, totals, CHUNKS) computes."""
    part = torch.tensor(parts, device=course_lib.DEVICE)
    total = torch.empty_like(part)
    kernel[(len(parts),)](part, total, CHUNKS=len(parts))
    return total.tolist()


def compile_row(N: int, num_warps: int = 32) -> CompileReport:
    """Compile the course's resident LayerNorm for an H100: fp16, rows of ``N`` columns, a power of
    two."""
    half, single = Pointer("fp16"), Pointer("fp32")
    arguments = [half, half, half, half, single, single, N, 1, N, 1, 1024, N, 1e-5]
    constants = {"HAS_W": True, "HAS_B": True, "ROWS": 1, "BLOCK": N}
    return compile_report(
        layer_norm_resident_kernel, arguments, constants, num_warps=num_warps, disassemble=False
    )


def measure_long_rows(*providers: str) -> Measurement:
    """Return times of LayerNorm forward in fp16 at the three shapes, measured now on this machine's
    GPU, or else stored ones.

    A row's op is "layer_norm" followed by a key of SHAPES.

    Args:
        providers: "torch", "blocked" (one program per row), "few_rows" (two launches), "split" (one
            launch), ...
    """
    if course_lib.MODE != "gpu":
        stored = measurement.stored(long_rows.KIND).only(providers=providers)
        names = [f"layer_norm{tag}" for tag in SHAPES]
        shape_rows = [
            row
            for row in stored.rows
            if row["op"] in names and SHAPES[row["op"][10:]] == (row["M"], row["N"])
        ]
        return replace(stored, rows=shape_rows)
    result, timed = grid.begin(long_rows.KIND, "fp16", providers, long_rows.PROVIDERS, whole=False)
    for tag, (M, N) in SHAPES.items():
        grid.measure_shape(
            result, (OPERATIONS["layer_norm"],), grid.Shape(M, N, tag), "fp16", timed
        )
    return result
