"""Tables that describe every order of a launch's programs: each program's next operation, given the
values it has found so far.

A program that finds the same values does the same. So one table per program, with rows of "values
found, values left, next row", describes any order of the programs, and the browser can follow an
order that was never run. The tables come from real runs: the interpreter tries orders until the
tables do not grow any more.
"""

from __future__ import annotations

import math
import operator
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.lessons import second_process
from course_lib.lessons.pictures.schedule.run import (
    Interleaving,
    Operation,
    read_tensor,
    run,
    view_tensor,
)
from course_lib.lessons.second_process import LaunchJob

MOST_STEPS = 1000  # limit on the operations of one run
MOST_STATES = 6000  # limit on the states of a launch that walk() visits
MOST_RUNS = 300
WALKS = 200  # random walks of wander()
MOST_MOVES = 150  # moves of one such walk
MOST_NODES = 2000
MOST_ELEMENTS = 64  # limit on the elements of a shared tensor
# limit in CPU time of this process, so that a busy machine does not make the tables smaller
SECONDS = 6.0
_CYCLE = 8  # operations per turn of the longest spin loop that is recognised
_PLAIN_CALLS = frozenset(
    {"range", "min", "max", "abs", "float", "int", "while", "if", "and", "or", "not"}
)

_IDENTITY = operator.attrgetter("kind", "line", "tensor", "elements")


@dataclass
class Node:
    """A place in a program: its next operation (None if no run has shown it). ``following`` maps
    the values that the operation finds to the operation as it was recorded and to the next node;
    the node None is the program's end."""

    operation: Operation | None = None
    following: dict[str, tuple[Operation, Node | None]] = field(default_factory=dict)


def explore(
    kernel: Any, job: LaunchJob, seeds: Sequence[int], rooms: Sequence[int]
) -> dict[str, Any]:
    """Build the tables of a launch, as plain data for ``picture.js``. Needs Triton's interpreter
    mode.

    ``rooms``: limits on the number of unfinished programs at a time. The result leaves out
    operations on memory that programs do not share.

    - ``orders``: for each limit, and within it for each seed, the program of each operation in
      turn.
    - ``nodes``: for each program its nodes: an operation, and [found, left or None, next node or
      -1, changed] for all values it can find.
    - ``outcomes``: the final values of the first column of shared tensors that are not integers,
      for every possible result; None if not all orders were examined.

    Raises: CourseError that says what stopped the kernel.
    """
    tables = _Tables(kernel, job)
    runs = [tables.run(seed, room) for room in rooms for seed in seeds]
    tables.follow_late_threads(runs)
    whole, outcomes, deadlock = False, [], False
    shared: tuple[str, ...] = ()
    while shared != (shared := tables.list_shared()):
        whole, outcomes, deadlock = tables.walk(shared)
    if not whole:
        tables.wander(shared)
    return {
        "programs": runs[0].programs, "shared": shared, "nodes": tables.flatten(shared),
        "outcomes": outcomes if whole else None,
        "deadlock": deadlock, "barriers": tables.barriers,
        "orders": [[o.program for o in each.operations if _is_shown(o, shared)] for each in runs],
        "hidden": sum(not _is_shown(operation, shared) for operation in runs[0].operations),
    }  # fmt: skip


def _is_shown(operation: Operation, shared: Sequence[str]) -> bool:
    return operation.kind == "barrier" or operation.tensor in shared


class _Tables:
    """The tables so far, and the runs that fill them."""

    def __init__(self, kernel: Any, job: LaunchJob) -> None:
        self.kernel, self.job = kernel, job
        self.alike = not may_tell_programs_apart(second_process.read_source_lines(kernel))
        self.roots: list[Node] = []
        self.barriers: list[str] = []
        self.runs = self.count = 0
        self.touched: dict[str, set[int]] = {}
        self.written: set[str] = set()
        self.end = time.process_time() + SECONDS

    @property
    def exhausted(self) -> bool:
        return self.runs >= MOST_RUNS or self.count >= MOST_NODES or time.process_time() > self.end

    def list_shared(self) -> tuple[str, ...]:
        """List the tensors that more than one program touches and at least one writes: integers
        first, else in the kernel's order."""
        names = [
            t for t in self.job.tensors if t.name in self.written and len(self.touched[t.name]) > 1
        ]
        return tuple(t.name for t in sorted(names, key=lambda tensor: not is_integer(tensor.dtype)))

    def identify(self, state: Any) -> tuple[Any, ...]:
        """Make a key for a state. If the programs are interchangeable, states that differ only by
        swapping programs have the same key."""
        nodes, memory = state
        places = map(id, nodes)
        return tuple(sorted(places) if self.alike else places), tuple(map(_key, memory))

    def run(
        self, seed: int, resident: int, order: Sequence[int] = (), job: LaunchJob | None = None
    ) -> Interleaving:
        """Run the launch once and add its operations to the tables. ``job``: the launch with other
        memory at the start."""
        from course_lib.interpreter.scheduler import Scheduler
        from course_lib.interpreter.spinning import read_variables

        variables: dict[tuple[int, int, int], list[Any]] = {}
        outermost = Scheduler.run_programs.__code__

        def watch(access: Any) -> None:
            # [1:] drops the frame of this function, which does not belong to the kernel
            variables.setdefault(access.program, []).append(read_variables(outermost)[1:])

        answer = run(
            self.kernel,
            job or self.job,
            seed,
            resident,
            order=order,
            most_steps=MOST_STEPS,
            watch=watch,
        )
        self.runs += 1
        self.barriers += [words for words in answer.barriers if words not in self.barriers]
        if not self.roots:
            alike = Node() if self.alike else None
            self.roots = [alike or Node() for _each in range(answer.programs)]
        for program, index in enumerate(answer.indices):
            program_operations = [
                operation for operation in answer.operations if operation.program == program
            ]
            self._learn(
                program,
                program_operations,
                variables.get(index, []),
                ended=program in answer.finished,
            )
        return answer

    def _learn(
        self, program: int, operations: Sequence[Operation], variables: list[Any], *, ended: bool
    ) -> None:
        """Follow one program's run through its table, and add what the table does not have yet."""
        visited = [self.roots[program]]
        for i, operation in enumerate(operations):
            node = visited[-1]
            name = operation.tensor
            self.touched.setdefault(name, set()).add(program)
            if operation.kind not in ("load", "barrier"):
                self.written.add(name)
            node.operation = operation
            key = _key(operation.found)
            if key not in node.following:
                is_last = i + 1 == len(operations)
                following = (
                    None
                    if is_last and ended
                    else _find_turn(operations, variables, visited) or Node()
                )
                self.count += 1
                node.following[key] = operation, following
            following = node.following[key][1]
            if following is None:
                return
            visited.append(following)
        # the run was stopped before the program's next operation
        if len(operations) < len(variables):
            return

    def follow_late_threads(self, runs: Sequence[Interleaving]) -> None:
        """Add what a thread does that loads a number after another thread of its program has
        written it.

        Such a thread finds what its program left, and so do all threads of a program that runs
        first with this number in memory.
        """
        writes = {
            (*_IDENTITY(write), write.program): write
            for answer in runs
            for write in _list_overtaking_writes(answer)
        }
        for write in writes.values():
            self.run(0, len(self.roots), [write.program] * MOST_STEPS, self._leave(write))

    def _leave(self, operation: Operation) -> LaunchJob:
        """Return the launch with what the operation leaves in its memory at the start."""
        tensor = next(tensor for tensor in self.job.tensors if tensor.name == operation.tensor)
        memory = bytearray(self.job.memory)
        view_tensor(tensor, memory).flat[list(operation.elements)] = operation.left
        return replace(self.job, memory=bytes(memory))

    def walk(self, shared: Sequence[str]) -> tuple[bool, list[list[float]], bool]:
        """Visit every state that some order of the programs reaches; make a run for each move that
        the tables lack.

        Returns: whether all states were visited, the final values of the states in which all
            programs have ended, and whether some state is a deadlock, which no program can leave.
        """
        start, order = self._begin(shared)
        orders = {self.identify(start): order}
        waiting = [start]
        outcomes: dict[str, list[float]] = {}
        deadlock, whole = False, True
        while waiting:
            if len(orders) > MOST_STATES or self.exhausted:
                return False, [], deadlock
            state = waiting.pop()
            nodes, memory = state
            path = orders[self.identify(state)]
            if all(node is None for node in nodes):
                outcome = self._read_outcome(memory, shared)
                outcomes.setdefault(_key(outcome), outcome)
                continue
            stays = True
            for program, node in enumerate(nodes):
                if node is None:
                    continue
                after = self._step(state, program, shared, path)
                if after is None:
                    whole = stays = False
                    continue
                reached, order = after
                if self.identify(reached) == self.identify(state):
                    continue
                stays = False
                if self.identify(reached) not in orders:
                    orders[self.identify(reached)] = order
                    waiting.append(reached)
            deadlock = deadlock or stays
        return whole, sorted(outcomes.values()), deadlock

    def _read_outcome(
        self, memory: Sequence[Sequence[float]], shared: Sequence[str]
    ) -> list[float]:
        """Return the first number of each row of the shared tensors that hold no integers."""
        tensors = {tensor.name: tensor for tensor in self.job.tensors}
        return [
            value
            for values, name in zip(memory, shared, strict=True)
            if not is_integer(tensors[name].dtype)
            for value in values[0 :: tensors[name].shape[-1]]
        ]

    def wander(self, shared: Sequence[str]) -> None:
        """Take random walks through the tables, like a learner who chooses the programs by hand,
        and make a run for each move that the tables lack. If there are too many states to visit
        all, this finds the likely ones."""
        drawn = random.Random(0)
        for _walk in range(WALKS):
            state, path = self._begin(shared)
            for _move in range(MOST_MOVES):
                able = [program for program, node in enumerate(state[0]) if node is not None]
                after = (
                    self._step(state, drawn.choice(able), shared, path)
                    if able and not self.exhausted
                    else None
                )
                if after is None:
                    break
                state, path = after

    def _begin(self, shared: Sequence[str]) -> Any:
        """Return the state before the first operation on shared memory, and the order that leads
        there."""
        start_memory = tuple(tuple(_read_start(self.job, name)) for name in shared)
        return self._skip_private(tuple(self.roots), start_memory, shared, ())

    def _step(self, state: Any, program: int, shared: Sequence[str], path: tuple[int, ...]) -> Any:
        """Return the state after the next operation of ``program``, and the order that leads there;
        None if no run shows it."""
        nodes, memory = state
        node = nodes[program]
        for attempt in range(2):
            operation = node.operation
            if operation is not None:
                at = shared.index(operation.tensor) if operation.tensor in shared else None
                values_found = (
                    [] if at is None else [memory[at][element] for element in operation.elements]
                )
                known_step = node.following.get(_key(values_found))
                if known_step is not None:
                    operation_done, following = known_step
                    changed = list(memory)
                    if at is not None:
                        values = list(memory[at])
                        for element, value in zip(
                            operation_done.elements, operation_done.left, strict=True
                        ):
                            values[element] = value
                        changed[at] = tuple(values)
                    after = (*nodes[:program], following, *nodes[program + 1 :])
                    return self._skip_private(after, tuple(changed), shared, (*path, program))
            if attempt == 0:
                if self.exhausted:
                    return None
                self.run(0, len(self.roots), (*path, program, program, program))
        return None

    def _skip_private(
        self, nodes: Any, memory: Any, shared: Sequence[str], order: tuple[int, ...]
    ) -> Any:
        """Move every program to its next operation on shared memory. No other program can see the
        operations between."""
        nodes = list(nodes)
        for program, node in enumerate(nodes):
            nodes[program], passed = _pass_private(node, shared)
            order = (*order, *[program] * passed)
        return (tuple(nodes), memory), order

    def flatten(self, shared: Sequence[str]) -> list[list[Any]]:
        """Return the tables as lists, without operations on private memory; the first node of each
        is the start."""

        def skip(node: Node | None) -> Node | None:
            return _pass_private(node, shared)[0]

        tables = []
        for root in self.roots:
            numbers: dict[int, int] = {}
            rows: list[Any] = []
            queue = [skip(root)]
            while queue:
                node = queue.pop(0)
                if node is None or id(node) in numbers:
                    continue
                numbers[id(node)] = len(rows)
                rows.append(node)
                queue += [skip(following) for _found, following in node.following.values()]
            tables.append([self._describe(node, numbers, skip) for node in rows])
        return tables

    def _describe(self, node: Node, numbers: dict[int, int], skip: Any) -> list[Any]:
        operation = node.operation
        if operation is None:
            return []
        following = []
        for operation_done, after in node.following.values():
            after = skip(after)
            values_left = (
                None
                if _key(operation_done.left) == _key(operation_done.found)
                else operation_done.left
            )
            following.append(
                [
                    operation_done.found,
                    values_left,
                    -1 if after is None else numbers[id(after)],
                    int(operation_done.changed),
                ]
            )
        return [
            operation.kind,
            operation.line,
            operation.tensor,
            operation.elements,
            operation.sem,
            int(operation.shared),
            following,
        ]


def _pass_private(node: Node | None, shared: Sequence[str]) -> tuple[Node | None, int]:
    """Skip nodes whose operation no other program sees and that have one successor. Return the
    first other node, and the number skipped."""
    passed = 0
    while (
        node is not None
        and node.operation is not None
        and not _is_shown(node.operation, shared)
        and len(node.following) == 1
    ):
        ((_found, node),) = node.following.values()
        passed += 1
    return node, passed


def is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def _list_overtaking_writes(answer: Interleaving) -> Iterator[Operation]:
    """Yield the writes of a number that a thread of the program may still have to load, because no
    barrier lies between."""
    for program in range(answer.programs):
        loads: dict[Any, Operation] = {}  # place -> the load of this number since the last barrier
        for operation in answer.operations:
            place = operation.tensor, operation.elements
            if operation.program != program:
                continue
            if operation.changed and place in loads and operation.left != loads[place].found:
                yield operation
            if operation.kind == "barrier" or operation.shared:
                loads.clear()
            elif operation.kind == "load" and len(operation.elements) == 1:
                loads[place] = operation


def _find_turn(
    operations: Sequence[Operation], variables: list[Any], visited: list[Node]
) -> Node | None:
    """Find the node to which a spinning program returns; None if it does not spin.

    It spins if its last two turns of a loop found the same values and the second changed nothing,
    and if its variables are the same as one turn ago. ``visited``: the nodes so far; the last one
    is that of the latest operation.
    """
    now = len(visited)  # index of the next operation
    for length in range(1, _CYCLE + 1):
        if now < 2 * length or now >= len(variables) or now > len(operations):
            continue
        earlier, latest = (
            operations[now - 2 * length : now - length],
            operations[now - length : now],
        )
        still = all(_equal(a, b) and not b.changed for a, b in zip(earlier, latest, strict=True))
        if still and variables[now] == variables[now - length]:
            return visited[now - length]
    return None


def _equal(a: Operation, b: Operation) -> bool:
    return _IDENTITY(a) == _IDENTITY(b) and _key(a.found) == _key(b.found)


def _key(values: Sequence[float]) -> str:
    """Make a key of values, in which NaN equals NaN."""
    return ",".join(repr(float(value)) for value in values)


def may_tell_programs_apart(source: Mapping[int, str]) -> bool:
    """Return whether a program of this kernel may know its number: from ``program_id``, or from a
    function that is not in ``source``."""
    text = "\n".join(source.values())
    body = text[text.find("):") :]
    calls = {name for name in re.findall(r"([\w.]+)\s*\(", body) if not name.startswith("tl.")}
    return "program_id" in body or bool(calls - _PLAIN_CALLS)


def _read_start(job: LaunchJob, name: str) -> list[float]:
    (tensor,) = [tensor for tensor in job.tensors if tensor.name == name]
    if tensor.elements > MOST_ELEMENTS or tensor.strides != _pack(tensor.shape):
        words = _(
            "the schedule explorer shows shared tensors of up to {most} elements that lie behind"
            " one another; `{name}` has shape {shape} and strides {strides}. Use a smaller launch."
        )
        raise CourseError(
            words.format(most=MOST_ELEMENTS, name=name, shape=tensor.shape, strides=tensor.strides)
        )
    return read_tensor(tensor, job.memory).ravel().tolist()


def _pack(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a packed tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
