"""Run the programs of one launch interleaved. Each program is a generator that yields before a
memory operation.

At each yield the scheduler draws the program that goes on. The draw depends on the seed alone, so
that a seed gives the same schedule and the same bits every time.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.interpreter import hooks
from course_lib.interpreter.findings import Deadlock, GivenUp, Schedule, ScheduledStep, Wait, verb
from course_lib.interpreter.happens_before import RaceDetector, VectorClocks
from course_lib.interpreter.rewriting import make_pausing
from course_lib.interpreter.spinning import Spin


class Program:
    """A started program: its generator, its clocks, and the record of its spin loops."""

    def __init__(self, number: int, count: int, body: Generator[bool, None, None]):
        self.number = number
        self.body = body
        self.clocks = VectorClocks(number, count)
        # the program does not read the result of its next memory operation
        self.drops_result = False
        self.spin = Spin(Scheduler.run_programs.__code__)
        # the atomic or volatile load that the program repeats without any effect
        self.failed: ScheduledStep | None = None
        self.tries = 0
        self.changed = False  # another program has changed those bytes since the last try
        self.found_change = False  # the last try was the first one after such a change


class Scheduler:
    """One interleaved run of a launch. The arguments are those of
    :func:`course_lib.interpreter.schedule.run`."""

    def __init__(
        self,
        kernel: Any,  # Triton has no public type for an interpreted kernel
        grid: Sequence[int] | Callable[[dict], Sequence[int]],
        arguments: Sequence,
        constexprs: dict,
        seed: int,
        resident: int,
        max_steps: int,
        patience: int = 0,
        order: Sequence[int] = (),
    ):
        from triton.runtime.interpreter import GridExecutor, _implicit_cvt, interpreter_builder

        self.builder = interpreter_builder
        self.kernel = kernel.fn
        # num_warps and similar options have no meaning here
        named = {name: value for name, value in constexprs.items() if name in kernel.arg_names}
        bound = inspect.getcallargs(kernel.fn, *arguments, **named)
        fixed = GridExecutor(kernel.fn, kernel.arg_names, ()).constexprs
        self.arguments = {
            name: value if name in fixed else _implicit_cvt(value) for name, value in bound.items()
        }
        sizes: tuple[int, ...] = tuple(grid(self.arguments) if callable(grid) else grid)
        if not 1 <= len(sizes) <= 3:
            words = _("the grid {grid} has {count} dimensions: one to three can be launched")
            raise CourseError(words.format(grid=sizes, count=len(sizes)))
        self.sizes = x, y, z = (*sizes, 1, 1)[:3]
        programs = tuple(product(range(x), range(y), range(z)))
        self.schedule = Schedule(
            kernel=kernel.__name__,
            seed=seed,
            resident=resident,
            programs=programs,
            arguments=tuple(_find_pointers(self.arguments)),
        )
        self.max_steps, self.patience, self.order = max_steps, patience, order
        self.random = random.Random(seed)
        self.waiting_room = list(range(len(programs)))
        self.random.shuffle(self.waiting_room)
        self.residents: list[Program] = []
        self.running: Program | None = None
        self.races = RaceDetector(self.schedule)

    def run(self) -> Schedule:
        """Run every program to its end, or until no program can continue. Raises: InterpreterError
        if a program raises."""
        from triton.runtime.interpreter import _patch_lang

        patched = _patch_lang(self.kernel)
        try:
            self.builder.set_grid_dim(*self.sizes)
            with hooks.observing(self.observe):
                self.run_programs()
        finally:
            patched.restore()
        self.schedule.races, self.schedule.no_barrier = self.races.collect()
        return self.schedule

    def run_programs(self) -> None:
        """Let the programs go on in the order that is drawn, each up to its next memory
        operation."""
        from triton.runtime.errors import InterpreterError

        while (program := self.draw_next()) is not None:
            self.running = program
            self.builder.set_grid_idx(*self.schedule.programs[program.number])
            try:
                program.drops_result = next(program.body)
            except StopIteration:
                self.residents.remove(program)
                self.schedule.finished.append(program.number)
            except Exception as error:
                raised = InterpreterError(repr(error))
                raised.add_note(
                    f"{self.schedule.name(program.number)} of {self.schedule.kernel}, seed"
                    f" {self.schedule.seed}"
                )
                raise raised from error

    def observe(self, access: hooks.MemoryAccess) -> None:
        """Record an operation of the running program. It happens when this function returns."""
        file, line = hooks.line_of_kernel() or ("", 0)
        assert self.running is not None, "an operation of no program of this run"
        self.record(self.running, access, file, line)

    def draw_next(self) -> Program | None:
        """Return the program that makes the next step; None if the run is over."""
        while self.waiting_room and len(self.residents) < self.schedule.resident:
            number = self.waiting_room.pop()
            body = make_pausing(self.kernel)(**self.arguments)
            program = Program(number, len(self.schedule.programs), body)
            self.residents.append(program)
            self.schedule.started.append(number)
        if not self.residents:
            return None
        number = (
            self.order[len(self.schedule.steps)]
            if len(self.schedule.steps) < len(self.order)
            else None
        )
        for program in self.residents:
            if program.number == number:
                return program
        able = [program for program in self.residents if not program.spin.stuck]
        if not able:
            self.schedule.deadlock = self.describe_deadlock()
            return None
        if len(self.schedule.steps) >= self.max_steps:
            self.schedule.limit = self.describe_limit()
            return None
        if self.patience and self.running in able and self.running.failed is not None:
            self.patience -= 1
            return self.running
        return able[int(self.random.random() * len(able))]

    def record(self, program: Program, access: hooks.MemoryAccess, file: str, line: int) -> None:
        """Add a step to the schedule, and report it to the race detector and to the programs that
        wait for these bytes."""
        live = access.live().ravel()
        lanes, size = live.size, 0
        address = int(live[0]) if lanes else 0
        if lanes > 1:
            live = _sort_unique(live)
            address, size = int(live[0]), int(live[-1]) - int(live[0]) + access.itemsize
        elif lanes:
            size = access.itemsize
        changed, wrote = _predict_effect(access) if lanes else (False, False)
        shared = access.is_atomic and access.addresses.size == 1 and not program.drops_result
        step = ScheduledStep(
            program.number, access.kind, line, file, address, size, lanes, changed, shared
        )
        self.schedule.steps.append(step)
        self.note_tries(program, step, access)
        if lanes:
            self.races.add_step(len(self.schedule.steps), step, access, wrote, live, program.clocks)
        elif access.kind == "barrier":
            self.races.add_barrier(len(self.schedule.steps), program.clocks)
        if changed:
            program.spin.forget()
            for resident in self.residents:
                if resident is not program:
                    resident.spin.note_write(address, size)
                    failed = resident.failed
                    resident.changed |= (
                        failed is not None
                        and failed.address < address + size
                        and address < failed.address + failed.size
                    )
        else:
            program.spin.note_step(step)

    def note_tries(self, program: Program, step: ScheduledStep, access: hooks.MemoryAccess) -> None:
        """Count how often a program repeats an atomic or a volatile load without effect, until it
        goes on with something else.

        A program whose last try finds what another program has just written did not give up: it
        waited by an operation that never has an effect, and its wait is over.
        """
        failed, may_wait = program.failed, access.is_atomic or access.sem == "relaxed"
        if may_wait and not step.changed:
            same = failed is not None and (failed.file, failed.line, failed.address) == (
                step.file,
                step.line,
                step.address,
            )
            if failed is not None and not same and program.tries > 1:
                self.note_given_up(program, failed)
            program.failed, program.tries = step, program.tries + 1 if same else 1
            program.found_change, program.changed = same and program.changed, False
        elif failed is not None and step.changed:
            program.failed = None
            if not access.is_atomic:
                self.note_given_up(program, failed)

    def note_given_up(self, program: Program, failed: ScheduledStep) -> None:
        if program.found_change:
            return
        program_name, where = (
            self.schedule.name(program.number),
            self.schedule.place(failed.address),
        )
        words = _(
            "{program} tried {tries} times at line {line} ({does} on {where}), never got it, and"
            " went on"
        )
        words = (
            _("{program} tried once at line {line} ({does} on {where}), never got it, and went on")
            if program.tries == 1
            else words
        )
        words = words.format(
            program=program_name,
            tries=program.tries,
            line=failed.line,
            does=verb(failed),
            where=where,
        )
        self.schedule.given_up.append(GivenUp(failed, program.tries, words))

    def describe_deadlock(self) -> Deadlock:
        schedule = self.schedule
        finished, waits, wait_too = set(schedule.finished), [], set()
        for program in self.residents:
            step = program.spin.find_wait()
            holder = self.races.find_last_change(step.address, step.size)
            if holder is None:
                holder_text = _("no program has changed the number there")
            else:
                if holder.program == program.number:
                    holder_text = _(
                        "{program} changed it last, at line {line} ({does}), and is this very"
                        " program"
                    )
                elif holder.program in finished:
                    holder_text = _(
                        "{program} changed it last, at line {line} ({does}), and has finished"
                    )
                else:
                    holder_text = _(
                        "{program} changed it last, at line {line} ({does}), and waits too"
                    )
                    wait_too.add(program.number)
                holder_text = holder_text.format(
                    program=schedule.name(holder.program), line=holder.line, does=verb(holder)
                )
            where = schedule.place(step.address)
            message = _("{program} waits at line {line} ({does} on {where}): {holder}").format(
                program=schedule.name(program.number),
                line=step.line,
                does=verb(step),
                where=where,
                holder=holder_text,
            )
            waits.append(Wait(step, where, holder, message))
        # Put last the programs that wait for a waiting program: the others show more of the cause.
        waits.sort(key=lambda wait: wait.step.program in wait_too)
        not_started = tuple(sorted(self.waiting_room))
        return Deadlock(tuple(waits), not_started, self.tell_deadlock(waits, len(not_started)))

    def tell_deadlock(self, waits: list[Wait], not_started: int) -> str:
        """Describe a deadlock in at most three sentences: what to look for, which program waits,
        and how many others wait."""
        first_wait, other_count = waits[0], len(waits) - 1
        words = (
            _("{count} more program waits") if other_count == 1 else _("{count} more programs wait")
        )
        also = [words.format(count=other_count)] if other_count else []
        words = (
            _("{count} cannot start, because the only slot is taken")
            if self.schedule.resident == 1
            else _("{count} cannot start, because all {resident} slots are taken")
        )
        also += (
            [words.format(count=not_started, resident=self.schedule.resident)]
            if not_started
            else []
        )
        words = _(
            "Deadlock in {kernel}: find the line that should change {where}, and why no program"
            " gets there"
        )
        sentences = [
            words.format(kernel=self.schedule.kernel, where=first_wait.where),
            f"{first_wait.message[0].upper()}{first_wait.message[1:]}",
            _(", and ").join(also),
        ]  # fmt: skip
        return join_sentences(*(f"{sentence}{_('.')}" for sentence in sentences if sentence))

    def describe_limit(self) -> str:
        return _(
            "Not finished after {steps} steps: {done} of {programs} programs are done. No deadlock"
            " could be proved: either this is a long run, and max_steps is to be raised, or the"
            " programs keep one another busy forever (a livelock)."
        ).format(
            steps=self.max_steps,
            done=len(self.schedule.finished),
            programs=len(self.schedule.programs),
        )


def _find_pointers(arguments: dict) -> Iterator[tuple[str, int, int]]:
    for name, value in arguments.items():
        element = getattr(getattr(value, "dtype", None), "element_ty", None)
        if element is not None and hasattr(value, "handle"):
            yield name, int(value.handle.data.flat[0]), max(1, element.primitive_bitwidth // 8)


def _sort_unique(addresses: np.ndarray) -> np.ndarray:
    """Return the addresses ascending and without repetition. Those of most blocks are so
    already."""
    return addresses if (addresses[1:] > addresses[:-1]).all() else np.unique(addresses)


def _read_memory(access: hooks.MemoryAccess, dtype: np.dtype) -> np.ndarray:
    """Read the present values at the live lanes of the access, in its shape; 0 for the other
    lanes."""
    from triton.runtime.interpreter import _interpreter

    pointers = np.ascontiguousarray(access.addresses).astype(np.uint64, copy=False)
    return _interpreter.load(
        pointers, np.ascontiguousarray(access.mask), np.zeros(pointers.shape, dtype), dtype
    )


def _predict_effect(access: hooks.MemoryAccess) -> tuple[bool, bool]:
    """Return whether an operation that is about to happen may change a bit of memory, and whether
    it writes at all.

    A plain store counts as a change.
    """
    if not access.is_atomic:
        return access.writes, access.writes
    values = np.asarray(access.values)
    old = _read_memory(access, values.dtype)
    if access.kind == "cas":
        wins = (old == access.expected) & access.mask
        return bool((wins & (old != values)).any()), bool(wins.any())
    if access.kind in ("umax", "umin"):
        old, values = old.view(f"u{values.itemsize}"), values.view(f"u{values.itemsize}")
    match access.kind:
        case "add" | "fadd" | "xor":
            change = values != 0
        case "max" | "umax":
            change = values > old
        case "min" | "umin":
            change = values < old
        case "and":
            change = (old & values) != old
        case "or":
            change = (old | values) != old
        case _:
            change = old != values
    return bool((change & access.mask).any()), True
