"""Lesson 03: Welford within blocks, Chan's merge between them, one step a frame, with count, mean and M2 of every node: what is shown, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons.words import format_decimal
from course_lib.norms import statistics
from course_lib.norms.statistics import Partial

MAX_COLUMNS = 8
BLOCKS = (1, 2, 4, 8)
DTYPES = {"fp32": np.float32, "fp16": np.float16}
DATA = {
    "worked example": (2.0, -1.0, 3.0, 0.5, -0.5, 1.5, -2.0, 1.0),
    "two levels": (1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0),
    "mean 10000": (10002.0, 9999.0, 10003.0, 10000.5, 9999.5, 10001.5, 9998.0, 10001.0),
}


@dataclass(frozen=True)
class Node:
    """A partial: the statistics of elements ``first`` to ``last``. ``count`` is 0 for lanes past the end of the row."""

    first: int
    last: int
    count: int
    mean: float
    M2: float


@dataclass(frozen=True)
class MergeFrame:
    """The tree after one step. ``levels[0]`` are the blocks; None is not known yet."""

    x: tuple[float, ...]
    dtype: str
    block: int
    levels: tuple[tuple[Node | None, ...], ...]
    step: str  # "update" or "merge"
    level: int  # of the nodes that this step made
    made: tuple[int, ...]  # their places in it
    column: int  # the element of each block that was taken in, for "update"
    direct: float  # E[x^2] - E[x]^2 in the same dtype, for comparison
    true: float

    @property
    def root(self) -> Node | None:
        return self.levels[-1][0]


def steps(x: ArrayLike, block: int = 1, dtype: str = "fp32") -> list[MergeFrame]:
    """Every step: first one element of each block at a time, all blocks side by side; then merge by merge, level by level.

    Args:
        x: shape (N,) with 1 to 8 numbers; rounded to dtype.
        block: numbers a block, a power of two. A last short block and missing blocks are lanes past the end of the row.

    Raises: CourseError if x, block or dtype does not fit.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or not 1 <= len(x) <= MAX_COLUMNS:
        raise CourseError(f"the merge tree shows one row of 1 to {MAX_COLUMNS} numbers; this x has shape {x.shape}.")
    if block not in BLOCKS or dtype not in DTYPES:
        raise CourseError(
            f"the merge tree knows blocks of {BLOCKS} and the dtypes {', '.join(DTYPES)}; you asked for {block}, {dtype!r}."
        )
    x = x.astype(DTYPES[dtype])
    with np.errstate(over="ignore", invalid="ignore"):  # one-pass leaves fp16's range, and that is to be seen
        return _Tree(x, block, dtype).frames()


class _Tree:
    """The nodes while the frames are made."""

    def __init__(self, x: np.ndarray, block: int, dtype: str) -> None:
        self.x, self.block, self.dtype = x, block, dtype
        blocks = 1 << (-(-len(x) // block) - 1).bit_length()  # a power of two, as lanes are
        sizes = [blocks >> level for level in range(blocks.bit_length())]
        self.levels: list[list[Node | None]] = [[None] * size for size in sizes]
        self.direct = float(statistics.one_pass(x, x.dtype, "pairwise").var)
        self.true = float(x.astype(np.float64).var())

    def frames(self) -> list[MergeFrame]:
        frames = []
        states = [statistics.empty((), self.x.dtype) for _ in self.levels[0]]
        for column in range(min(self.block, len(self.x))):
            taken = []
            for place in range(len(states)):
                at = place * self.block + column
                if at < len(self.x):
                    states[place] = statistics.welford_update(states[place], self.x[at])
                    taken.append(place)
                self.levels[0][place] = self._node(0, place, states[place])
            frames.append(self._frame("update", 0, taken, column))
        parts = states
        for level in range(1, len(self.levels)):
            parts = [self._merge(parts, level, place, frames) for place in range(len(self.levels[level]))]
        return frames

    def _merge(self, parts: list[Partial], level: int, place: int, frames: list[MergeFrame]) -> Partial:
        merged = statistics.merge(parts[2 * place], parts[2 * place + 1])
        self.levels[level][place] = self._node(level, place, merged)
        frames.append(self._frame("merge", level, [place], 0))
        return merged

    def _node(self, level: int, place: int, part: Partial) -> Node:
        size = self.block << level
        return Node(place * size, (place + 1) * size - 1, int(part.count), float(part.mean), float(part.M2))

    def _frame(self, step: str, level: int, made: list[int], column: int) -> MergeFrame:
        levels = tuple(tuple(nodes) for nodes in self.levels)
        return MergeFrame(
            tuple(map(float, self.x)), self.dtype, self.block, levels, step, level, tuple(made), column, self.direct, self.true
        )  # fmt: skip


def title(frame: MergeFrame) -> str:
    """The message of one frame."""
    if frame.root is not None and frame.level == len(frame.levels) - 1 and frame.root.count == len(frame.x):
        return f"The root knows all {frame.root.count}: variance {format_decimal(frame.root.M2, 3)} / {frame.root.count} = {format_decimal(_variance(frame), 3)}"
    if frame.step == "update":
        return (
            "Each block takes in its first number"
            if frame.column == 0
            else f"Welford: each block takes in its number {frame.column + 1}"
        )
    _, a, b = _merged(frame)
    if 0 in (a.count, b.count):
        return "Merging with an empty side changes nothing"
    return f"Merge: {_range(a)} with {_range(b)}"


def describe(frame: MergeFrame) -> str:
    """The caption: the step's arithmetic in numbers."""
    words = [f"{len(frame.x)} numbers in blocks of {frame.block}, {frame.dtype}."]
    if frame.step == "update":
        for place in frame.made:
            node = _known(frame.levels[0][place])
            taken = frame.x[place * frame.block + frame.column]
            words.append(
                f"Block {place} takes {format_decimal(taken, 3)}: n = {node.count}, mean = {format_decimal(node.mean, 3)}, M2 = {format_decimal(node.M2, 3)}."
            )
    else:
        node, a, b = _merged(frame)
        if b.count == 0:
            words.append("The right side has no number: n = 0, mean = 0, M2 = 0.")
        else:
            gap = format_decimal(b.mean - a.mean, 3)
            words.append(
                f"The means are {format_decimal(a.mean, 3)} and {format_decimal(b.mean, 3)}, d = {gap}, n = {a.count} + {b.count} = {node.count}."
            )
            words.append(
                f"mean = {format_decimal(a.mean, 3)} + d * {b.count} / {node.count} = {format_decimal(node.mean, 3)}."
            )
            words.append(
                f"M2 = {format_decimal(a.M2, 3)} + {format_decimal(b.M2, 3)} + d^2 * {a.count} * {b.count} / {node.count} = {format_decimal(node.M2, 3)}."
            )
    if frame.root is not None and frame.root.count == len(frame.x):
        words.append(
            f"Variance {format_decimal(_variance(frame), 3)}, true {format_decimal(frame.true, 3)}; E[x^2] - E[x]^2 in {frame.dtype}: {format_decimal(frame.direct, 3)}."
        )
    return " ".join(words)


def _merged(frame: MergeFrame) -> tuple[Node, Node, Node]:
    """The node that a merge made, and the two it was made of."""
    place = frame.made[0]
    below = frame.levels[frame.level - 1]
    return _known(frame.levels[frame.level][place]), _known(below[2 * place]), _known(below[2 * place + 1])


def _known(node: Node | None) -> Node:
    assert node is not None, "a step makes its nodes of nodes that earlier steps made"
    return node


def _variance(frame: MergeFrame) -> float:
    root = _known(frame.root)
    return root.M2 / root.count


def _range(node: Node) -> str:
    return f"x[{node.first}]" if node.first == node.last else f"x[{node.first}..{node.last}]"
