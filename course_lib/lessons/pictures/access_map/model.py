"""The data of the access map: every access of a launch, lane by lane, with the pass over the tensor
that it belongs to.

Passes are counted per program: if a program loads an element for the second time, the load belongs
to its second read. A masked lane moves nothing and belongs to no pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from course_lib.launching.description import LaunchTensor
from course_lib.lessons import style
from course_lib.lessons.pictures.access_map.run import RecordedAccess, Recording

VERBS = ("read", "write", "atomic")
# number of passes that are told apart; later ones count as the last
LAST = {"read": 4, "write": 2, "atomic": 1}
MOST_RUNS = 4000  # runs of lanes that the page carries, see split_lanes
# colours for tensors whose names the course does not know
_SPARE = ("r", "dx", "dw", "dy", "db", "y", "mean", "w", "x")


@dataclass(frozen=True)
class Pass:
    """The ``number``-th time (from 1) that a program reads, writes, or does an atomic operation on
    an element.

    The last number in LAST stands for all later passes as well: "read 4" is every read after the
    third.
    """

    verb: str  # one of VERBS
    number: int


@dataclass(frozen=True, eq=False)
class AccessStep:
    """One access, and the pass of each of its lanes."""

    access: RecordedAccess
    verb: str
    visits: np.ndarray  # int64, per lane: the number of its pass, from 1, not limited by LAST

    @cached_property
    def passes(self) -> dict[Pass, np.ndarray]:
        """Return for each pass the offsets of its lanes."""
        numbers = np.minimum(self.visits, LAST[self.verb])
        return {
            Pass(self.verb, int(number)): self.access.offsets[numbers == number]
            for number in np.unique(numbers)
        }


@dataclass(frozen=True, eq=False)
class AccessMap:
    """A launch: its recording, and one step per access, in the order in which the accesses ran."""

    recording: Recording
    steps: tuple[AccessStep, ...]
    # cache of traffic()
    _counted: dict[int, dict[tuple[str, Pass], int]] = field(default_factory=dict)

    @cached_property
    def of_program(self) -> dict[int, list[int]]:
        """Return for each program the numbers of its steps."""
        steps_by_program: dict[int, list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            steps_by_program[step.access.program].append(number)
        return steps_by_program

    def traffic(self, until: int | None = None) -> dict[tuple[str, Pass], int]:
        """Return the bytes per tensor and pass in the first ``until`` steps (None: in all).

        Every lane of every access to a tensor counts in exactly one of them, so they add up to the
        bytes of the recording.
        """
        until = len(self.steps) if until is None else until
        if until not in self._counted:
            self._counted[until] = self._count(until)
        return self._counted[until]

    def _count(self, until: int) -> dict[tuple[str, Pass], int]:
        sizes: dict[tuple[str, Pass], int] = defaultdict(int)
        for step in self.steps[:until]:
            if step.access.tensor is None:
                continue
            for a_pass, offsets in step.passes.items():
                sizes[step.access.tensor, a_pass] += offsets.size * step.access.itemsize
        return dict(sizes)

    def bytes(
        self, tensor: str | None = None, verb: str | None = None, until: int | None = None
    ) -> int:
        """Return the bytes asked for, of one tensor or all, by one verb or all. Memory outside the
        tensors does not count."""
        return sum(
            size
            for (name, a_pass), size in self.traffic(until).items()
            if tensor in (None, name) and verb in (None, a_pass.verb)
        )

    def times(self, tensor: str, verb: str) -> float:
        """Return the bytes asked for by ``verb``, divided by the tensor's size; 0 for an empty
        tensor."""
        (size,) = [t.elements * t.itemsize for t in self.recording.tensors if t.name == tensor]
        return self.bytes(tensor, verb) / size if size else 0.0


def model(recording: Recording) -> AccessMap:
    """Sort every lane of a recording into passes."""
    indices = _indices(recording)
    counts: dict[tuple[int, str, str], np.ndarray] = {}
    steps = []
    for access in recording.accesses:
        verb = {"load": "read", "store": "write"}.get(access.kind, "atomic")
        visits = np.ones(access.offsets.size, np.int64)
        if access.tensor is not None:
            tensor_offsets = indices[access.tensor]
            visit_counts = counts.setdefault(
                (access.program, access.tensor, verb), np.zeros(tensor_offsets.size, np.int64)
            )
            at = np.searchsorted(tensor_offsets, access.offsets)
            visits = visit_counts[at] + 1
            visit_counts[at] += 1  # lanes of one access that share an element count as one visit
        steps.append(AccessStep(access, verb, visits))
    return AccessMap(recording, tuple(steps))


def _indices(recording: Recording) -> dict[str, np.ndarray]:
    """Return per tensor the sorted offsets that the launch touches. A dense array would not fit:
    rows may lie 2^30 apart."""
    parts: dict[str, list[np.ndarray]] = defaultdict(list)
    for access in recording.accesses:
        if access.tensor is not None:
            parts[access.tensor].append(access.offsets)
    return {name: np.unique(np.concatenate(offsets)) for name, offsets in parts.items()}


# ---- for the picture


def make_data(state: AccessMap) -> dict[str, Any]:
    """Return the data for ``picture.js``: the accesses of the first programs as runs of lanes
    (start, step, count), and the launch's bytes.

    Programs are added until they have MOST_RUNS runs. The program that was stopped comes first; the
    first one is cut if it is too long.
    """
    recording = state.recording
    index = {tensor.name: number for number, tensor in enumerate(recording.tensors)}
    stopped = state.steps[-1].access.program if recording.fault and state.steps else None
    programs: dict[int, list[list[Any]]] = {}
    spent = 0
    for program in sorted(range(recording.programs), key=lambda number: number != stopped):
        accesses = []
        for number in state.of_program.get(program, ()):
            access = state.steps[number].access
            in_tensor = access.tensor is not None
            # outside the tensors, addresses differ in every run
            pieces = split_lanes(access.offsets) if in_tensor else []
            spent += len(pieces)
            if spent > MOST_RUNS and programs:
                break
            verb = VERBS.index(state.steps[number].verb)
            tensor = index[access.tensor] if access.tensor is not None else -1
            accesses.append(
                [
                    access.line,
                    verb,
                    tensor,
                    access.itemsize,
                    access.offsets.size,
                    access.masked,
                    pieces[:MOST_RUNS],
                ]
            )
        if spent > MOST_RUNS and programs:
            break
        programs[program] = accesses
    colours = _choose_colours(recording.tensors)
    return {
        "kernel": recording.kernel, "grid": recording.grid, "count": recording.programs,
        "fault": recording.fault, "stopped": stopped,
        "apart": recording.apart,
        "programs": [[program, programs[program]] for program in sorted(programs)],
        "tensors": [
            {
                "name": tensor.name, "elements": tensor.elements, "itemsize": tensor.itemsize,
                "colour": colours[tensor.name],
                "bytes": {verb: state.bytes(tensor.name, verb) for verb in VERBS},
                "times": {verb: state.times(tensor.name, verb) for verb in VERBS},
            }
            for tensor in recording.tensors
        ],
        "source": {line: recording.source.get(line,
            "").split("  #")[0].strip() for line in _list_lines(state)},
    }  # fmt: skip


def split_lanes(offsets: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut the lanes' offsets, in lane order, into runs (start, step, count)."""
    values = offsets.tolist()
    runs, at = [], 0
    while at < len(values):
        step = values[at + 1] - values[at] if at + 1 < len(values) else 0
        end = at + 1
        while end < len(values) and values[end] - values[end - 1] == step:
            end += 1
        runs.append((values[at], step, end - at))
        at = end
    return runs


def _list_lines(state: AccessMap) -> list[int]:
    return sorted({step.access.line for step in state.steps if step.access.line is not None})


def _choose_colours(tensors: Iterable[LaunchTensor]) -> dict[str, str]:
    """Return the course's colour for each tensor that has one by name, and an unused colour for
    each other tensor."""
    names = [tensor.name for tensor in tensors]
    coloured = [name for name in names if name in style.GROUPS["tensors"]]
    spare = [name for name in _SPARE if name not in coloured]
    unknown = [name for name in names if name not in coloured]
    return {name: name for name in coloured} | {
        name: spare[i % len(spare)] for i, name in enumerate(unknown)
    }
