"""What the schedule explorer knows: the frames of one interleaved run, and words for them. Plain data, no drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.base.errors import CourseError
from course_lib.lessons.schedule.run import Clash, Interleaving, Operation

MOST_PROGRAMS = 8
MOST_ELEMENTS = 12  # of a vector of integers
MOST_ROWS, MOST_COLUMNS = 4, 6  # of a matrix

MARKS = {
    "L": "load",
    "S": "store",
    "T": "lock taken",
    "w": "tried in vain",
    "F": "lock given back",
    "A": "other atomic",
    "B": "barrier",
}


@dataclass(frozen=True)
class Lane:
    """One program in one frame: what it has done so far as (number of the frame, mark), and how it stands.

    ``waits_on`` and ``waits_for``: the place that it tried in vain, and who changed that place last.
    """

    program: int
    marks: tuple[tuple[int, str], ...]
    status: str  # "not started", "running", "waits", "done"
    waits_on: str = ""
    waits_for: int | None = None


@dataclass(frozen=True)
class Memory:
    """A tensor that programs share: its values now (None where nobody has written and none was given), and what was touched."""

    name: str
    columns: int
    values: tuple[float, ...]
    touched: frozenset[int]
    holders: Mapping[int, int]  # of integers: element -> the program whose atomic made it other than 0
    integers: bool


@dataclass(frozen=True)
class ScheduleFrame:
    """The state after ``number`` of ``total`` operations that are shown. ``operation`` is None in the first frame."""

    kernel: str
    seed: int
    number: int
    total: int
    operation: Operation | None
    source: str
    lanes: tuple[Lane, ...]
    memory: tuple[Memory, ...]
    races: tuple[tuple[int, int, Clash], ...]  # frames of both operations of every race met so far
    verdict: str  # in the last frame: the finding, or that there was none
    left_out: int
    last: bool


def frames(run: Interleaving, *, everything: bool = False) -> list[ScheduleFrame]:
    """The frames of ``run``: before the first operation, and after each.

    Args:
        everything: also loads and stores of memory that one program has for itself, or that nobody writes to.

    Raises: CourseError if there are more programs than the picture has lanes.
    """
    if run.programs > MOST_PROGRAMS:
        raise CourseError(
            f"the schedule explorer has {MOST_PROGRAMS} lanes; this launch has {run.programs} programs. Use a smaller grid."
        )
    state = _State(run, everything)
    out = [state.frame(0, -1)]
    for number, operation in enumerate(run.operations):
        state.apply(number, operation)
        if number in state.frame_of:
            out.append(state.frame(state.frame_of[number], number))
    # what a program does after its last operation shown belongs to the end
    out[-1] = state.frame(state.total, len(run.operations))
    return out


def shared_tensors(run: Interleaving) -> tuple[str, ...]:
    """Tensors that more than one program touches and at least one writes, integers first, in the kernel's order."""
    programs: dict[str, set[int]] = {}
    written = set()
    for operation in run.operations:
        programs.setdefault(operation.tensor, set()).add(operation.program)
        if operation.kind not in ("load", "barrier"):
            written.add(operation.tensor)
    names = [tensor for tensor in run.tensors if tensor.name in written and len(programs[tensor.name]) > 1]
    return tuple(
        tensor.name for tensor in sorted(names, key=lambda tensor: not tensor.dtype.startswith(("int", "uint")))
    )


def mark(operation: Operation) -> str:
    """One letter for an operation: the keys of MARKS."""
    if operation.kind in ("load", "store", "barrier"):
        return operation.kind[0].upper()
    if operation.kind == "xchg" and not any(operation.left):
        return "F"
    if not operation.changed:
        return "w"
    return "T" if operation.kind in ("cas", "xchg") else "A"


def find_telling_frame(all_frames: Sequence[ScheduleFrame]) -> int:
    """The frame a still picture shows: where the first race is complete, else the last but a few, where somebody waits."""
    for frame in all_frames:
        if frame.races:
            return frame.number
    if "Deadlock" in all_frames[-1].verdict:
        return len(all_frames) - 1
    waiting = [frame.number for frame in all_frames if sum(lane.status == "waits" for lane in frame.lanes) > 0]
    return waiting[len(waiting) // 2] if waiting else len(all_frames) - 1


class _State:
    """The run up to some operation: what each program has done, and what the shared memory holds."""

    def __init__(self, run: Interleaving, everything: bool):
        self.run, self.shared = run, shared_tensors(run)
        shown = [
            i
            for i, operation in enumerate(run.operations)
            if everything or operation.tensor in self.shared or operation.kind == "barrier"
        ]
        self.shown, self.total = shown, len(shown)
        self.frame_of = {number: at + 1 for at, number in enumerate(shown)}
        self.contents = {name: run.first(name).ravel().tolist() for name in self.shared}
        self.changed_by: dict[tuple[str, int], int] = {}
        self.marks: dict[int, list[tuple[int, str]]] = {program: [] for program in range(run.programs)}
        self.latest: dict[int, Operation] = {}
        self.ends = {
            p: max((i for i, operation in enumerate(run.operations) if operation.program == p), default=-1)
            for p in run.finished
        }

    def apply(self, number: int, operation: Operation) -> None:
        self.latest[operation.program] = operation
        if operation.tensor in self.contents:
            for element, value in zip(operation.elements, operation.left, strict=True):
                self.contents[operation.tensor][element] = value
            if operation.changed:
                self.changed_by |= {(operation.tensor, element): operation.program for element in operation.elements}
        if number in self.frame_of:
            self.marks[operation.program].append((self.frame_of[number], mark(operation)))

    def frame(self, at: int, number: int) -> ScheduleFrame:
        """Frame ``at``, after operation ``number`` of the run."""
        run, operation = self.run, self.run.operations[self.shown[at - 1]] if at else None
        races = tuple(
            (self.frame_of[race.first], self.frame_of[race.second], race)
            for race in run.races
            if race.first in self.frame_of and self.frame_of.get(race.second, at + 1) <= at
        )
        return ScheduleFrame(
            run.kernel,
            run.seed,
            at,
            self.total,
            operation,
            run.source.get(operation.line, "").strip() if operation is not None else "",
            tuple(self.lane(program, number) for program in range(run.programs)),
            tuple(self.memory(name, operation) for name in self.shared),
            races,
            _verdict(run) if at == self.total else "",
            len(run.operations) - self.total,
            at == self.total,
        )

    def lane(self, program: int, number: int) -> Lane:
        last, done = self.latest.get(program), tuple(self.marks[program])
        if program in self.ends and self.ends[program] <= number:
            return Lane(program, done, "done")
        if last is None:
            return Lane(program, done, "not started")
        if mark(last) != "w":
            return Lane(program, done, "running")
        return Lane(
            program,
            done,
            "waits",
            _place(last),
            self.changed_by.get((last.tensor, last.elements[0])) if last.elements else None,
        )

    def memory(self, name: str, operation: Operation | None) -> Memory:
        tensor, values = self.run.tensor(name), tuple(self.contents[name])
        integers = tensor.dtype.startswith(("int", "uint"))
        touched = frozenset(operation.elements) if operation is not None and operation.tensor == name else frozenset()
        holders = (
            {i: self.changed_by[name, i] for i, value in enumerate(values) if value and (name, i) in self.changed_by}
            if integers
            else {}
        )
        return Memory(name, len(values) if integers else tensor.shape[-1], values, touched, holders, integers)


def _verdict(run: Interleaving) -> str:
    races = f"{len(run.races)} race{'s' * (len(run.races) > 1)}." if run.races else "No race, no deadlock."
    return run.deadlock or run.limit or races


# ---- words


def caption(frame: ScheduleFrame) -> str:
    """What the frame shows, in sentences."""
    words = [f"Seed {frame.seed}, operation {frame.number} of {frame.total}."]
    if frame.operation is None:
        words.append("Nothing has happened yet.")
        if frame.left_out:
            words.append(f"{frame.left_out} loads and stores of a program's own memory are left out.")
    else:
        words.append(
            f"Program {frame.operation.program}, line {frame.operation.line}: {_describe_operation(frame.operation)}."
        )
    waiting = [
        f"program {lane.program} waits for {lane.waits_on}"
        + (f", changed last by program {lane.waits_for}" if lane.waits_for is not None else "")
        for lane in frame.lanes
        if lane.status == "waits"
    ]
    if waiting:
        sentence = "; ".join(waiting) + "."
        words.append(sentence[0].upper() + sentence[1:])
    if frame.races:
        words.append(frame.races[-1][2].message)
    if frame.last:
        words.append(f"The end: {frame.verdict}")
    return " ".join(words)


def title(frame: ScheduleFrame) -> str:
    """The one message of the picture."""
    if frame.last and "Deadlock" in frame.verdict:
        return "Deadlock: nobody can go on"
    if frame.races:
        first, second, race = frame.races[-1]
        return f"A race on {race.where}: operations {first} and {second}"
    waiting = [lane for lane in frame.lanes if lane.status == "waits"]
    if frame.last:
        return "All programs are done" if frame.verdict.startswith("No race") else "The run is over"
    if waiting:
        who = ", ".join(str(lane.program) for lane in waiting)
        return f"Program{'s' * (len(waiting) > 1)} {who} wait{'s' * (len(waiting) == 1)} for a lock"
    return "Nobody waits"


def number(value: float) -> str:
    """A value short enough for a cell."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return f"{value:.4g}"


def _place(operation: Operation) -> str:
    elements = operation.elements
    if not elements:
        return operation.tensor
    where = str(min(elements)) if len(elements) == 1 else f"{min(elements)} to {max(elements)}"
    return f"{operation.tensor}[{where}]"


def _describe_operation(operation: Operation) -> str:
    place = _place(operation)
    values = ", ".join(number(value) for value in operation.left[:6]) + (", ..." if len(operation.left) > 6 else "")
    match mark(operation):
        case "L":
            return f"loads {place} and finds {values}" if operation.elements else "loads nothing, every lane is masked"
        case "S":
            return f"stores {values} to {place}" if operation.elements else "stores nothing, every lane is masked"
        case "T":
            return f"takes {place}"
        case "F":
            return f"gives back {place}"
        case "w":
            return f"tries {place} in vain, it is {values}"
        case "B":
            return "its threads meet at a barrier"
    return f"changes {place} to {values} in one piece"
