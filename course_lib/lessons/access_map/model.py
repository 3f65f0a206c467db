"""What the access map shows: every access of a launch, lane by lane, with the pass over the tensor that it belongs to.

A pass is counted for a program: the second time that one program loads an element is its second read of it. A lane
that is masked moves nothing and belongs to no pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from course_lib.lessons.access_map.run import RecordedAccess, Recording, Tensor
from course_lib.lessons.words import format_bytes, format_count

VERBS = ("read", "write", "atomic")
LAST = {"read": 4, "write": 2, "atomic": 1}  # passes told apart; what comes after is counted with the last
_WORDS = {
    ("read", 1): "first read", ("read", 2): "second read", ("read", 3): "third read", ("read", 4): "later reads",
    ("write", 1): "write", ("write", 2): "later writes", ("atomic", 1): "atomics",
}  # fmt: skip


@dataclass(frozen=True)
class Pass:
    """The ``number``-th time (from 1) that a program reads, writes, or does an atomic operation on an element.

    The fourth read stands for all after the third, the second write for all after the first.
    """

    verb: str  # one of VERBS
    number: int

    @property
    def words(self) -> str:
        return _WORDS[self.verb, self.number]

    @property
    def rank(self) -> tuple[int, int]:
        """Reads first, then writes, then atomics."""
        return VERBS.index(self.verb), self.number


@dataclass(frozen=True, eq=False)
class AccessStep:
    """One access, and the pass of each of its lanes."""

    access: RecordedAccess
    verb: str
    visits: np.ndarray  # int64, a lane: the how-many-th time, from 1, without end

    @cached_property
    def passes(self) -> dict[Pass, np.ndarray]:
        """Pass -> the offsets of its lanes."""
        numbers = np.minimum(self.visits, LAST[self.verb])
        return {Pass(self.verb, int(number)): self.access.offsets[numbers == number] for number in np.unique(numbers)}


@dataclass(frozen=True)
class Traffic:
    """What one pass over one tensor asks for: bytes, and the kernel's lines that ask."""

    bytes: int
    lines: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AccessMap:
    """A launch: its recording, and a step for each access, in the order they ran."""

    recording: Recording
    steps: tuple[AccessStep, ...]
    _counted: dict[int, dict[tuple[str, Pass], Traffic]] = field(
        default_factory=dict
    )  # a drawing asks for the same several times

    @cached_property
    def of_program(self) -> dict[int, list[int]]:
        """Program -> the numbers of its steps."""
        found: dict[int, list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            found[step.access.program].append(number)
        return found

    @cached_property
    def passes(self) -> dict[str, tuple[Pass, ...]]:
        """Tensor -> its passes over the whole launch."""
        found: dict[str, set[Pass]] = {tensor.name: set() for tensor in self.recording.tensors}
        for step in self.steps:
            if step.access.tensor is not None:
                found[step.access.tensor] |= step.passes.keys()
        return {name: tuple(sorted(passes, key=lambda p: p.rank)) for name, passes in found.items()}

    def traffic(self, until: int | None = None) -> dict[tuple[str, Pass], Traffic]:
        """Bytes and lines by tensor and pass, of the first ``until`` steps (None: all).

        Every lane of every access to a tensor is in exactly one of them: they add up to the bytes of the recording.
        """
        until = len(self.steps) if until is None else until
        if until not in self._counted:
            self._counted[until] = self._count(until)
        return self._counted[until]

    def _count(self, until: int) -> dict[tuple[str, Pass], Traffic]:
        sizes: dict[tuple[str, Pass], int] = defaultdict(int)
        lines: dict[tuple[str, Pass], set[int]] = defaultdict(set)
        for step in self.steps[:until]:
            if step.access.tensor is None:
                continue
            for a_pass, offsets in step.passes.items():
                sizes[step.access.tensor, a_pass] += offsets.size * step.access.itemsize
                if step.access.line is not None:
                    lines[step.access.tensor, a_pass].add(step.access.line)
        return {key: Traffic(size, tuple(sorted(lines[key]))) for key, size in sizes.items()}

    def bytes(self, tensor: str | None = None, verb: str | None = None, until: int | None = None) -> int:
        """Bytes asked for, of one tensor or all of them, by one verb or all. Memory that is no tensor's is not in it."""
        return sum(
            t.bytes
            for (name, a_pass), t in self.traffic(until).items()
            if tensor in (None, name) and verb in (None, a_pass.verb)
        )

    def times(self, tensor: str, verb: str) -> float:
        """How often the launch goes over the tensor: bytes asked for by ``verb`` over its size; 0 for an empty tensor."""
        (size,) = [t.nbytes for t in self.recording.tensors if t.name == tensor]
        return self.bytes(tensor, verb) / size if size else 0.0

    def footprint(
        self, tensor: str, programs: Iterable[int], until: int | None = None
    ) -> dict[tuple[int, Pass], np.ndarray]:
        """(program, pass) -> the sorted offsets it covers, of the first ``until`` steps."""
        wanted = set(programs)
        found: dict[tuple[int, Pass], list[np.ndarray]] = defaultdict(list)
        for program in wanted:
            for number in self.of_program.get(program, ()):
                step = self.steps[number]
                if (until is None or number < until) and step.access.tensor == tensor:
                    for a_pass, offsets in step.passes.items():
                        found[program, a_pass].append(offsets)
        return {key: np.unique(np.concatenate(parts)) for key, parts in found.items()}


def model(recording: Recording) -> AccessMap:
    """Sort every lane of a recording into passes."""
    indices = _indices(recording)
    counts: dict[tuple[int, str, str], np.ndarray] = {}
    steps = []
    for access in recording.accesses:
        verb = {"load": "read", "store": "write"}.get(access.kind, "atomic")
        visits = np.ones(access.offsets.size, np.int64)
        if access.tensor is not None:
            known = indices[access.tensor]
            seen = counts.setdefault((access.program, access.tensor, verb), np.zeros(known.size, np.int64))
            at = np.searchsorted(known, access.offsets)
            visits = seen[at] + 1
            seen[at] += 1  # lanes that meet in one element are one visit
        steps.append(AccessStep(access, verb, visits))
    return AccessMap(recording, tuple(steps))


def _indices(recording: Recording) -> dict[str, np.ndarray]:
    """The offsets of each tensor that are touched at all, sorted: rows may lie 2^30 apart."""
    parts: dict[str, list[np.ndarray]] = defaultdict(list)
    for access in recording.accesses:
        if access.tensor is not None:
            parts[access.tensor].append(access.offsets)
    return {name: np.unique(np.concatenate(offsets)) for name, offsets in parts.items()}


def runs(offsets: np.ndarray, gap: int = 1) -> list[tuple[int, int]]:
    """Sorted offsets as runs (first, last); a step of up to ``gap`` does not end one."""
    if not offsets.size:
        return []
    ends = np.flatnonzero(np.diff(offsets) > gap)
    firsts, lasts = np.concatenate([[0], ends + 1]), np.concatenate([ends, [offsets.size - 1]])
    return [(int(offsets[a]), int(offsets[b])) for a, b in zip(firsts, lasts, strict=True)]


# ---- words


def title(state: AccessMap) -> str:
    """The one message: how often the tensors with most bytes are read and written, or what stopped the launch."""
    if state.recording.fault:
        if not state.steps:
            return "The launch is stopped before its first access"
        last = state.steps[-1].access
        count = len(state.of_program[last.program])
        if last.tensor is None and last.offsets.size:
            return f"Program {last.program} leaves its tensors in operation {count}"
        return f"The launch is stopped behind operation {count} of program {last.program}"
    parts = []
    for verb, does in (("read", "reads"), ("write", "writes"), ("atomic", "updates")):
        totals = {name: state.bytes(name, verb) for name in state.passes}
        most = max(totals, key=lambda name: totals[name], default=None)
        if most is not None and totals[most]:
            parts.append(f"{does} {most} {_often(_most_visits(state, most, verb))}")
    return (
        f"A program {' and '.join(filter(None, [', '.join(parts[:-1]), parts[-1]]))}"
        if parts
        else "No program asks for any memory"
    )


def _most_visits(state: AccessMap, tensor: str, verb: str) -> int:
    return max(
        int(step.visits.max())
        for step in state.steps
        if step.access.tensor == tensor and step.verb == verb and step.visits.size
    )


def _often(count: int) -> str:
    return {1: "once", 2: "twice", 3: "three times"}.get(count, f"{count} times")


def describe(state: AccessMap, at: int) -> str:
    """The caption: the step shown, then the launch so far."""
    recording = state.recording
    words = [f"{recording.kernel}, grid {_shape(recording.grid)}."]
    if state.steps:
        step = state.steps[at]
        words.append(f"{operation(state, at)}: {_describe_step(step)}{_line(step)}.")
    words.append(f"Asked for so far, lane by lane: {format_bytes(state.bytes(until=at + 1))}.")
    over = [
        f"{tensor.name} {' and '.join(format_count(state.times(tensor.name, verb), verb) for verb in _list_verbs(state, tensor))}"
        for tensor in recording.tensors
        if state.passes[tensor.name]
    ]
    if over:
        words.append(f"Times over each tensor in the whole launch: {', '.join(over)}.")
    if recording.fault:
        words.append(recording.fault)
    words.append(
        "A cache may answer part of it." if not recording.apart else f"A cache may answer part of it. {recording.apart}"
    )
    return " ".join(words)


def _list_verbs(state: AccessMap, tensor: Tensor) -> list[str]:
    return [verb for verb in VERBS if any(p.verb == verb for p in state.passes[tensor.name])]


def operation(state: AccessMap, at: int) -> str:
    """ "Program 1, operation 5 of 14"."""
    program = state.steps[at].access.program
    own = state.of_program[program]
    return f"Program {program}, operation {own.index(at) + 1} of {len(own)}"


def _describe_step(step: AccessStep) -> str:
    access = step.access
    lanes = access.offsets.size
    what = f"{lanes} {'lane' if lanes == 1 else 'lanes'}"
    masked = f", {access.masked} masked" if access.masked else ""
    if not lanes:
        return f"a {access.kind} of which every lane is masked ({access.masked})"
    said = (
        f"{' and '.join(p.words for p in step.passes)} of {access.tensor}"
        if access.tensor is not None
        else f"{step.verb} outside the tensors"
    )
    return f"{said}, {what}{masked}, {format_bytes(access.bytes)}"


def _line(step: AccessStep) -> str:
    return f", line {step.access.line}" if step.access.line is not None else ""


def _shape(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
