"""Lesson 00: which program, which lane and which mask bit copies which element of x to y: what is shown, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.base.errors import CourseError
from course_lib.lessons.words import agree, format_count

BLOCKS = (2, 4, 8, 16)
MAX_N = 40
MAX_PROGRAMS = 20


@dataclass(frozen=True)
class Program:
    """One program of the launch: ``offsets[i]`` is the address lane i asks for, ``mask[i]`` whether it may."""

    pid: int
    offsets: tuple[int, ...]
    mask: tuple[bool, ...]


@dataclass(frozen=True)
class CopyMap:
    """What one launch of the copy kernel does to a y of ``n`` elements."""

    n: int
    block: int
    masked: bool  # whether the kernel passes mask=offsets < n
    lanes: tuple[Program, ...]
    written: tuple[int, ...]  # elements of y that get their value
    unwritten: tuple[int, ...]  # elements of y that keep what was there before
    past_end: tuple[int, ...]  # addresses behind y that an unmasked lane overwrites
    idle: tuple[int, ...]  # programs with no element of their own

    @property
    def needed(self) -> int:
        """The grid that covers n elements: cdiv(n, BLOCK)."""
        return -(-self.n // self.block)


def model(n: int, block: int, programs: int | None = None, masked: bool = True) -> CopyMap:
    """Run ``offsets = program_id * BLOCK + arange(0, BLOCK); mask = offsets < n`` for every program of the launch.

    Args:
        programs: the grid; None takes cdiv(n, block).
        masked: False leaves the mask out of the load and the store.

    Raises: CourseError if n or programs is below 1, or block is not a power of two.
    """
    if n < 1 or block < 1 or block & (block - 1) or (programs is not None and programs < 1):
        raise CourseError(
            f"copy_map needs n >= 1, programs >= 1 and a power of two as block, got n={n}, block={block}, programs={programs}."
        )
    grid = -(-n // block) if programs is None else programs
    lanes = []
    for pid in range(grid):
        offsets = tuple(range(pid * block, (pid + 1) * block))
        lanes.append(Program(pid, offsets, tuple(offset < n for offset in offsets)))
    reached = grid * block
    return CopyMap(
        n=n,
        block=block,
        masked=masked,
        lanes=tuple(lanes),
        written=tuple(range(min(n, reached))),
        unwritten=tuple(range(min(n, reached), n)),
        past_end=() if masked else tuple(range(n, reached)),
        idle=tuple(program.pid for program in lanes if not any(program.mask)),
    )


def title(state: CopyMap) -> str:
    """The one message of the picture: the worst thing that happens, or that nothing does."""
    grid = len(state.lanes)
    if state.past_end:
        count = len(state.past_end)
        return f"Without the mask, {format_count(count, 'lane')} {agree(count, 'writes', 'write')} past the end of y"
    if state.unwritten:
        count = len(state.unwritten)
        return f"{format_count(grid, 'program')} {agree(grid, 'is', 'are')} too few: {format_count(count, 'element')} of y never written"
    if state.idle:
        count = len(state.idle)
        return f"{format_count(count, 'program')} {agree(count, 'has', 'have')} nothing to copy: all {agree(count, 'its', 'their')} lanes are past n"
    spare = grid * state.block - state.n
    if not spare:
        return f"{state.n} is {grid} x {state.block}: every lane has an element, no mask is needed"
    return f"The mask holds back {format_count(spare, 'lane')} of program {grid - 1}"


def describe(state: CopyMap) -> str:
    """The caption: the launch, what is written, and what goes wrong, in sentences."""
    grid, last = len(state.lanes), state.lanes[-1]
    words = [
        f"n = {state.n}, BLOCK = {state.block}, {format_count(grid, 'program')} (cdiv(n, BLOCK) is {state.needed}), "
        f"{'with' if state.masked else 'without'} the mask.",
        f"The last program, {last.pid}, asks for offsets {last.offsets[0]} to {last.offsets[-1]}.",
        f"{agree(len(state.written), 'Element', 'Elements')} {_span(state.written)} of y {agree(len(state.written), 'is', 'are')} written.",
    ]
    if state.unwritten:
        words.append(
            f"{agree(len(state.unwritten), 'Element', 'Elements')} {_span(state.unwritten)}: no program asks, so the old value stays."
        )
    if state.past_end:
        one = len(state.past_end) == 1
        words.append(
            f"{'Offset' if one else 'Offsets'} {_span(state.past_end)} {'lies' if one else 'lie'} behind y: "
            "the store overwrites memory that belongs to something else."
        )
    elif state.masked and grid * state.block > state.n:
        spare = tuple(range(state.n, grid * state.block))
        one = len(spare) == 1
        words.append(
            f"{'Offset' if one else 'Offsets'} {_span(spare)} {'fails' if one else 'fail'} offsets < n: "
            f"{'that lane loads and stores' if one else 'those lanes load and store'} nothing."
        )
    elif not state.masked:
        words.append("Nothing goes wrong here: every lane has an element. It is this n that saves you, not the kernel.")
    return " ".join(words)


def _span(numbers: tuple[int, ...]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
