"""The checks of a launch that need no clock: which numbers no kernel accepts, and how many bytes
the launch keeps under way on an H100.

The kernel is the course's LayerNorm that keeps its rows in registers
(``course_lib/kernels/layer_norm.py``). The compiler reports its registers and spills for this
launch; they determine how many programs a multiprocessor holds.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.compiler import CompileError, Pointer, compile_report, residency

# an H100 SXM by NVIDIA's data sheet; LATENCY_NS is the time of a load from memory that lesson 15
# assumes
DEVICE, ARCH, MULTIPROCESSORS, BANDWIDTH, LATENCY_NS = "H100", "sm_90", 132, 3.35e12, 600
# bytes that a multiprocessor must have requested at any time, by Little's law
NEEDED = BANDWIDTH * LATENCY_NS / 1e9 / MULTIPROCESSORS
# Twice that is a rule of thumb: a program loads during only a part of its time. While it adds up
# and stores, it has no load under way.
WANTED = 2 * NEEDED
ITEMSIZE = {"fp16": 2, "fp32": 4}
_MOST_WARPS = 32
_MOST_NUMBERS = 1 << 20  # Triton's own limit for a tile
_MOST_A_THREAD = 255  # registers per thread; each number of a row takes one
_LIMIT = 30.0  # time limit for the compiler, in seconds
NAMES = ("ROWS", "BLOCK", "num_warps")


class LaunchChoice(NamedTuple):
    """A launch in which a program takes ``rows`` whole rows, in a tile of ``block`` columns, with
    ``num_warps`` warps."""

    rows: int
    block: int
    num_warps: int

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(NAMES, self, strict=True))


def suggest(M: int, N: int) -> LaunchChoice:
    """Return one of many suitable launches: about 8 KB of fp16 per program, 32 numbers per thread,
    a program per multiprocessor if M allows.
    """
    block = 1 << (N - 1).bit_length()
    rows = max(1, 4096 // block)
    while rows > 1 and rows * MULTIPROCESSORS > M:
        rows //= 2
    return LaunchChoice(rows, block, max(1, rows * block // 1024))


@dataclass(frozen=True)
class LaunchFault:
    """A reason to reject a launch. ``cause`` is an identifier of the grader; ``words`` is a
    sentence without its full stop."""

    cause: str
    words: str


@dataclass(frozen=True)
class LaunchPrediction:
    """The compiler's report on a launch, and what one multiprocessor of an H100 holds of it.

    Args:
        registers: registers per thread.
        spill_bytes: spilled bytes per thread.
        programs: programs that are resident at a time.
        limited_by: the resource that leaves no room for more programs.
        tile_bytes: bytes of x that each program has requested.
    """

    registers: int
    spill_bytes: int
    programs: int
    limited_by: str
    tile_bytes: int

    @property
    def under_way(self) -> int:
        return self.programs * self.tile_bytes

    def __str__(self) -> str:
        words = _(
            "{registers} registers a thread, {programs} on a multiprocessor, {under_way} under way"
        )
        return words.format(
            registers=self.registers,
            programs=_count_programs(self.programs),
            under_way=format_kb(self.under_way),
        )


def format_kb(count: float) -> str:
    return f"{count / 1024:.3g} KB"


def find_illegal(N: int, values: tuple[float, ...]) -> LaunchFault | None:
    """Return why no kernel can be launched with these numbers, or why columns would be left out;
    None if the results will be right.

    Args:
        N: number of columns, at least 1.
        values: the learner's ROWS, BLOCK and num_warps; any numbers.
    """
    for name, value in zip(NAMES, values, strict=True):
        if not math.isfinite(value) or value != int(value):
            words = _("{name} is {value}, and has to be a whole number")
            return LaunchFault("launch_not_legal", words.format(name=name, value=f"{value:g}"))
        if value < 1 or int(value) & (int(value) - 1):
            words = _("{name} is {value}, and has to be a power of two: 1, 2, 4, 8 ...")
            return LaunchFault("launch_not_legal", words.format(name=name, value=int(value)))
    rows, block, num_warps = map(int, values)
    if num_warps > _MOST_WARPS:
        words = _("num_warps is {num_warps}, and a program has {most} warps at most")
        return LaunchFault("launch_not_legal", words.format(num_warps=num_warps, most=_MOST_WARPS))
    if block < N:
        words = _("BLOCK is {block}: of {columns} columns the last {count} are never normalised")
        return LaunchFault(
            "columns_left_out", words.format(block=block, columns=N, count=N - block)
        )
    if rows * block > _MOST_NUMBERS:
        words = _(
            "a tile of ROWS x BLOCK = {rows} x {block} has more than {most} numbers, which Triton"
            " refuses"
        )
        return LaunchFault(
            "launch_not_legal", words.format(rows=rows, block=block, most=_MOST_NUMBERS)
        )
    return None


def find_misfit(M: int, N: int, dtype: str, launch: LaunchChoice) -> LaunchFault | None:
    """Return why a launch with right results cannot come near the floor of an H100; None if the
    checks without a clock find no reason.

    Raises: CourseError if the compiler refuses or does not finish; EnvironmentFault if there is
    none on this machine.
    """
    rows, block, num_warps = launch
    least = 1 << (N - 1).bit_length()
    if block > least:
        words = _(
            "BLOCK is {block} for {columns} columns: {idle} of the lanes of each row load nothing,"
            " and {least} are enough"
        )
        return LaunchFault(
            "lanes_idle", words.format(block=block, columns=N, idle=block - N, least=least)
        )
    programs, enough = -(-M // rows), min(M, MULTIPROCESSORS)
    if programs < enough:
        words = _(
            "with {rows} rows a program, {M} rows make {programs}; an {device} has"
            " {multiprocessors} multiprocessors, and fewer rows a program would give {wanted} of"
            " them work"
        )
        programs_text = _count_programs(programs)
        words = words.format(
            rows=rows,
            M=M,
            programs=programs_text,
            device=DEVICE,
            multiprocessors=MULTIPROCESSORS,
            wanted=enough,
        )
        return LaunchFault("too_few_programs", words)
    a_thread = rows * block / (32 * num_warps)
    if a_thread > _MOST_A_THREAD:
        words = _("a thread gets {numbers} numbers of x, and has {registers} registers")
        return LaunchFault(
            "tile_spills", words.format(numbers=f"{a_thread:g}", registers=_MOST_A_THREAD)
        )
    prediction = predict(N, dtype, launch)
    if prediction.spill_bytes:
        words = _(
            "a thread gets {numbers} numbers of x and may have {registers} registers: {spill_bytes}"
            " bytes of each thread spill"
        )
        words = words.format(
            numbers=f"{a_thread:g}",
            registers=_count_registers(num_warps),
            spill_bytes=prediction.spill_bytes,
        )
        return LaunchFault("tile_spills", words)
    if prediction.under_way < WANTED and M * N * ITEMSIZE[dtype] >= MULTIPROCESSORS * WANTED:
        words = _(
            "an {device}'s multiprocessor holds {programs} of {warps} ({scarce} leave no room for "
            "more), with {each} of x each: "
            "{under_way} under way, and {wanted} are wanted"
        ).format(
            device=DEVICE, programs=_count_programs(prediction.programs),
            scarce=prediction.limited_by,
            each=format_kb(prediction.tile_bytes),
            warps=(_("{count} warp") if num_warps == 1
                else _("{count} warps")).format(count=num_warps),
            under_way=format_kb(prediction.under_way), wanted=format_kb(WANTED),
        )  # fmt: skip
        return LaunchFault("too_little_under_way", words)
    return None


def _count_programs(count: int) -> str:
    return (_("{count} program") if count == 1 else _("{count} programs")).format(count=count)


def _count_registers(num_warps: int) -> int:
    """Return the most registers that a thread may have: all warps of a program have to fit on a
    multiprocessor."""
    return min(_MOST_A_THREAD, 65536 // (32 * num_warps))


@functools.cache
def predict(N: int, dtype: str, launch: LaunchChoice) -> LaunchPrediction:
    """Compile the kernel for an H100, with x packed, and compute how much of it a multiprocessor
    holds.

    Raises: CourseError if the compiler refuses the launch or crashes; EnvironmentFault if there is
    none on this machine.
    """
    runtime.current()  # sets up Triton's mode before the next line imports Triton
    from course_lib.kernels.layer_norm import layer_norm_resident_kernel

    x, statistics = Pointer(dtype), Pointer("fp32")
    arguments = [x, x, x, x, statistics, statistics, N, 1, N, 1, 4096, N, 1e-5]
    constants = {"HAS_W": True, "HAS_B": True, "ROWS": launch.rows, "BLOCK": launch.block}
    try:
        report = compile_report(
            layer_norm_resident_kernel,
            arguments,
            constants,
            num_warps=launch.num_warps,
            arch=ARCH,
            disassemble=False,
            limit=_LIMIT,
        )
    except CompileError as error:
        words = _(
            "the compiler said nothing about {launch} for {columns} columns: {error} Choose a"
            " smaller tile."
        )
        raise CourseError(words.format(launch=launch, columns=N, error=error)) from None
    held = residency(ARCH, report.registers, report.shared_bytes, launch.num_warps)
    programs = held.warps // launch.num_warps
    scarce = min(held.programs, key=lambda name: held.programs[name])
    words = {
        "warps": _("its {count} warps"),
        "programs": _("its {count} slots for programs"),
        "registers": _("its registers"),
    }
    words = words.get(scarce, _("its {resource}"))
    limited_by = words.format(
        count=held.most if scarce == "warps" else held.programs[scarce], resource=scarce
    )
    return LaunchPrediction(
        report.registers,
        report.spill_bytes,
        programs,
        limited_by,
        launch.rows * N * ITEMSIZE[dtype],
    )
