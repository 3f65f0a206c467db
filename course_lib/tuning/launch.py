"""What can be known of a launch without a clock: which of its numbers no kernel takes, and what it has under way on an H100.

The kernel is the course's LayerNorm that holds its rows in registers (``course_lib/kernels/layer_norm.py``). Registers and spills are
what the compiler says of it for this launch; the programs that a multiprocessor holds follow from them.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.compiler import CompileError, Pointer, compile_report, residency

# an H100 SXM: NVIDIA's data sheet, and what lesson 15 takes for a load from memory
DEVICE, ARCH, MULTIPROCESSORS, BANDWIDTH, LATENCY_NS = "H100", "sm_90", 132, 3.35e12, 600
NEEDED = BANDWIDTH * LATENCY_NS / 1e9 / MULTIPROCESSORS  # bytes that a multiprocessor must have asked for: Little's law
# Twice that, because a program loads for a part of its time only; then it adds up and stores, and nothing of it is under way. Twice is a rule of
# thumb: on the stored H100, up to 16384 columns, this kernel with 32 KB and more takes 1.00 to 1.05 of the floor, with 8 to 24 KB 1.2 to 2.8.
WANTED = 2 * NEEDED
ITEMSIZE = {"fp16": 2, "fp32": 4}
_MOST_WARPS = 32
_MOST_NUMBERS = 1 << 20  # of a tile: Triton's own limit
_MOST_A_THREAD = 255  # registers, of which each number of a row takes one
_LIMIT = 30.0  # seconds of the compiler; a sound launch takes 0.3
NAMES = ("ROWS", "BLOCK", "num_warps")


class Launch(NamedTuple):
    """A program takes ``rows`` whole rows, in a tile of ``block`` columns, with ``num_warps`` warps."""

    rows: int
    block: int
    num_warps: int

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(NAMES, self, strict=True))


def suggest(M: int, N: int) -> Launch:
    """One launch of many that fit: about 8 KB of fp16 a program, 32 numbers a thread, and a program for each multiprocessor where M allows."""
    block = 1 << (N - 1).bit_length()
    rows = max(1, 4096 // block)
    while rows > 1 and rows * MULTIPROCESSORS > M:
        rows //= 2
    return Launch(rows, block, max(1, rows * block // 1024))


@dataclass(frozen=True)
class Fault:
    """Why a launch will not do. ``cause`` is an identifier of the grader's, ``words`` are a sentence without its full stop."""

    cause: str
    words: str


@dataclass(frozen=True)
class Prediction:
    """What one multiprocessor of an H100 holds. ``registers`` are a thread's, ``spill_bytes`` its stack; ``programs`` are resident at a time,
    as many as ``limited_by`` leaves room for; each of them has asked for ``tile_bytes`` of x."""

    registers: int
    spill_bytes: int
    programs: int
    limited_by: str
    tile_bytes: int

    @property
    def under_way(self) -> int:
        return self.programs * self.tile_bytes

    def __str__(self) -> str:
        resident = f"{self.programs} program{'s' * (self.programs != 1)} on a multiprocessor"
        return f"{self.registers} registers a thread, {resident}, {format_kb(self.under_way)} under way"


def format_kb(count: float) -> str:
    return f"{count / 1024:.3g} KB"


def find_illegal(N: int, values: tuple[float, ...]) -> Fault | None:
    """Why no kernel can be launched like this, or would leave out columns; None for a launch that gives right numbers.

    Args: N columns, at least 1; what was returned for ROWS, BLOCK and num_warps, any numbers.
    """
    for name, value in zip(NAMES, values, strict=True):
        if not math.isfinite(value) or value != int(value):
            return Fault("launch_not_legal", f"{name} is {value:g}, and has to be a whole number")
        if value < 1 or int(value) & (int(value) - 1):
            return Fault("launch_not_legal", f"{name} is {int(value)}, and has to be a power of two: 1, 2, 4, 8 ...")
    rows, block, num_warps = map(int, values)
    if num_warps > _MOST_WARPS:
        return Fault("launch_not_legal", f"num_warps is {num_warps}, and a program has {_MOST_WARPS} warps at most")
    if block < N:
        return Fault("columns_left_out", f"BLOCK is {block}: of {N} columns the last {N - block} are never normalised")
    if rows * block > _MOST_NUMBERS:
        return Fault(
            "launch_not_legal", f"a tile of ROWS x BLOCK = {rows} x {block} has more than {_MOST_NUMBERS} numbers, which Triton refuses"
        )
    return None


def find_misfit(M: int, N: int, dtype: str, launch: Launch) -> Fault | None:
    """Why a launch that gives right numbers cannot come near the floor of an H100; None if nothing that can be known speaks against it.

    Raises: CourseError if the compiler does not come to an end; EnvironmentFault if there is none on this machine.
    """
    rows, block, num_warps = launch
    least = 1 << (N - 1).bit_length()
    if block > least:
        return Fault(
            "lanes_idle", f"BLOCK is {block} for {N} columns: {block - N} of the lanes of each row load nothing, and {least} are enough"
        )
    programs, wanted = -(-M // rows), min(M, MULTIPROCESSORS)
    if programs < wanted:
        return Fault(
            "too_few_programs",
            f"with {rows} rows a program, {M} rows make {programs} program{'s' * (programs != 1)}; an {DEVICE} has {MULTIPROCESSORS} multiprocessors, "
            f"and fewer rows a program would give {wanted} of them work",
        )
    a_thread = rows * block / (32 * num_warps)
    if a_thread > _MOST_A_THREAD:
        return Fault("tile_spills", f"a thread gets {a_thread:g} numbers of x, and has {_MOST_A_THREAD} registers")
    made = predict(N, dtype, launch)
    if made.spill_bytes:
        return Fault(
            "tile_spills",
            f"a thread gets {a_thread:g} numbers of x and may have {_count_registers(num_warps)} registers: {made.spill_bytes} bytes of each thread spill",
        )
    if made.under_way < WANTED and M * N * ITEMSIZE[dtype] >= MULTIPROCESSORS * WANTED:
        resident = f"{made.programs} program{'s' * (made.programs != 1)} of {num_warps} warp{'s' * (num_warps != 1)}"
        return Fault(
            "too_little_under_way",
            f"an {DEVICE}'s multiprocessor holds {resident} ({made.limited_by} leave no room for more), with {format_kb(made.tile_bytes)} of x each: "
            f"{format_kb(made.under_way)} under way, and {format_kb(WANTED)} are wanted",
        )
    return None


def _count_registers(num_warps: int) -> int:
    """Registers that a thread may have: a program of many warps has to fit on a multiprocessor."""
    return min(_MOST_A_THREAD, 65536 // (32 * num_warps))


@functools.cache
def predict(N: int, dtype: str, launch: Launch) -> Prediction:
    """What the compiler makes of the kernel for an H100, x packed, and how much of it a multiprocessor holds.

    Raises: CourseError if the compiler refuses or does not survive it; EnvironmentFault if there is none on this machine.
    """
    runtime.current()  # decides how Triton is set up, before the next line imports it
    from course_lib.kernels.layer_norm import layer_norm_resident_kernel

    x, statistics = Pointer(dtype), Pointer("fp32")
    arguments = [x, x, x, x, statistics, statistics, N, 1, N, 1, 4096, N, 1e-5]
    constants = {"HAS_W": True, "HAS_B": True, "ROWS": launch.rows, "BLOCK": launch.block}
    try:
        made = compile_report(
            layer_norm_resident_kernel, arguments, constants, num_warps=launch.num_warps, arch=ARCH, disassemble=False, limit=_LIMIT
        )
    except CompileError as error:
        raise CourseError(f"the compiler said nothing about {launch} for {N} columns: {error} Choose a smaller tile.") from None
    held = residency(ARCH, made.registers, made.shared_bytes, launch.num_warps)
    programs = held.warps // launch.num_warps
    scarce = min(held.programs, key=lambda name: held.programs[name])
    limited_by = {"warps": f"its {held.most} warps", "programs": f"its {held.programs['programs']} slots for programs"}.get(
        scarce, f"its {scarce}"
    )
    return Prediction(made.registers, made.spill_bytes, programs, limited_by, launch.rows * N * ITEMSIZE[dtype])
