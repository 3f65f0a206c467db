"""Runs the programs of an interpreted kernel interleaved, and finds the races and deadlocks that launch order hides.

The stock interpreter runs one program after the other, so a race gives the right sum and a wait for a later program
hangs. Here every memory operation is a point where a seeded scheduler may go on with another program. The operation
itself is whole: no other program sees half of a block's store.

**How.** Each resident program has a thread, and exactly one of them runs: a pausing thread draws the next program and
wakes it. What is drawn depends on the seed alone, so a seed gives the same schedule and the same bits every time.

**Races** come from happens-before, not from luck: two accesses of different programs to the same byte, at least one a
write, not both atomic, and no chain of synchronisation between them. An atomic with release semantics followed by one
with acquire semantics on the same address makes such a link (Triton's default, acq_rel, is both; "relaxed" is neither; a
compare-and-swap that fails only acquires). A volatile load is a relaxed atomic one, as PTX defines it. Vector clocks as in DJIT+ are kept for every byte, over NumPy arrays. Lockset
methods were not taken: they call ticket and flag schemes racy. Sources: Flanagan and Freund 2009, "FastTrack: Efficient
and Precise Dynamic Race Detection"; Lamport 1978. A link is one that this schedule had: a wrong order that another
schedule shows may need another seed.

**Deadlocks** are proved, not timed. A program that comes back to the same operation with the same values in all its
variables, while the bytes it read on the way are unchanged, does so forever: it is set aside until somebody writes to
those bytes. When all resident programs are set aside, nobody will. So a wait that gives up after a number of tries is
no deadlock, and a wait costs few steps. A spin loop that counts its turns, or keeps something unusual in a variable, or
stores, is not proved: it ends at the step limit.

**Barriers.** The operations of one program happen in order here, each one whole. On a GPU a program is many threads: one
of them stores a single number, or does an atomic on one, and all of them load and store blocks. So every program has two
clocks, that of the one thread and that of all of them. An atomic on a single number publishes only what its own thread
knows, and ``tl.debug_barrier()`` is what tells it of the others' stores. What is ordered for programs that are one thread
each, and not for programs of many, is a missing barrier, and is reported apart from the races. The way in needs none: the
compiler hands an atomic's result to all threads through shared memory, with a ``bar.sync`` behind the atomic. Nor does a
single number that all threads load: it counts as the one thread's.

**What this cannot see.** Atomics of a whole block are taken to order the whole program, and an atomic's scope is not looked at.
An endless loop without a memory operation never comes back to the scheduler, and not even an interrupt ends its thread.
"""

from __future__ import annotations

import contextvars
import ctypes
import random
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.interpreter import hooks
from course_lib.interpreter.lock import LOCK

MAX_STEPS = 200_000


class Step(NamedTuple):
    """One memory operation of one program, in the order of the schedule.

    ``kind`` is an :class:`~course_lib.interpreter.hooks.Access`'s. ``address`` is the lowest byte of the live lanes (0 if
    there are none), ``size`` the bytes from there to the last one's end. ``changed``: what it wrote took effect; False for
    loads, barriers, a failed compare-and-swap, and an atomic that left memory as it was.
    """

    program: int
    kind: str
    line: int
    file: str
    address: int
    size: int
    lanes: int
    changed: bool


@dataclass(frozen=True)
class Race:
    """Two operations that touch the same bytes with nothing to order them; ``first`` came first in this schedule.

    ``address`` is the lowest byte they share, ``where`` its name. ``same_value``: both stored the same bits there, which is
    a race all the same. ``times`` counts the pairs of operations of the same two lines, on the same argument.
    """

    first: Step
    second: Step
    address: int
    where: str
    same_value: bool
    times: int
    message: str


@dataclass(frozen=True)
class NoBarrier:
    """A race only because programs are many threads: one thread does ``release`` for all, and may overtake ``first``.

    ``release`` is None if no atomic on a single number follows ``first``. ``times`` as in :class:`Race`.
    """

    first: Step
    release: Step | None
    second: Step
    address: int
    where: str
    times: int
    message: str


@dataclass(frozen=True)
class Wait:
    """A program that repeats ``step`` forever. ``holder`` is the last step that changed the bytes waited for, if any did."""

    step: Step
    where: str
    holder: Step | None
    message: str


@dataclass(frozen=True)
class Deadlock:
    """Every resident program waits; ``not_started`` are those that no slot was free for."""

    waits: tuple[Wait, ...]
    not_started: tuple[int, ...]
    message: str


@dataclass
class Schedule:
    """What happened in one interleaved run. Programs are numbered as ``programs`` lists them.

    ``started`` and ``finished`` are in the order in which programs did so. ``limit`` says in words that the step limit ended
    the run; None otherwise. ``arguments`` are the pointer arguments: name, address, bytes an element.
    """

    kernel: str
    seed: int
    resident: int
    programs: tuple[tuple[int, int, int], ...]
    arguments: tuple[tuple[str, int, int], ...]
    steps: list[Step] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    no_barrier: list[NoBarrier] = field(default_factory=list)
    deadlock: Deadlock | None = None
    limit: str | None = None
    started: list[int] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Every program finished."""
        return len(self.finished) == len(self.programs)

    @property
    def findings(self) -> tuple[str, ...]:
        """Everything that was found, in words."""
        found = [finding.message for finding in (*self.races, *self.no_barrier)]
        return (*found, *((self.deadlock.message,) if self.deadlock else ()), *((self.limit,) if self.limit else ()))

    def name(self, program: int) -> str:
        """The program in words: its index on a grid of one dimension, all three on a larger one."""
        index = self.programs[program]
        return f"program {index[0] if self.programs[-1][1:] == (0, 0) else index}"

    def place(self, address: int) -> str:
        """``address`` as an element of the pointer argument that it follows: "partial_ptr[12]"."""
        below = [argument for argument in self.arguments if argument[1] <= address]
        if not below:
            return hex(address)
        name, start, width = max(below, key=lambda argument: argument[1])
        return f"{name}[{(address - start) // width}]"


@dataclass(frozen=True)
class Exploration:
    """Several seeds of one launch. ``schedule`` is the first with a finding, None if there was none.

    ``differing``: two seeds whose runs were complete and left different bits, None if all agree. ``complete`` counts the runs
    that were compared.
    """

    schedule: Schedule | None
    differing: tuple[int, int] | None
    complete: int
    seeds: tuple[int, ...]


def run(kernel, grid, *arguments, seed: int = 0, resident: int = 8, max_steps: int = MAX_STEPS, **constexprs) -> Schedule:
    """Run every program of ``kernel[grid](*arguments, **constexprs)``, interleaved.

    Args:
        kernel: an interpreted ``@triton.jit`` kernel.
        grid: one to three sizes, or a function of the arguments as Triton takes it.
        arguments: PyTorch tensors on the CPU and numbers, or what :mod:`course_lib.interpreter.launch` makes of addresses.
        seed: draws the order in which programs start, and which one makes each step.
        resident: how many unfinished programs there may be at once, as a GPU has room for so many.
        max_steps: where a run ends that is neither done nor provably stuck.

    The tensors hold whatever the run left there, also after a deadlock. No thread is left.

    Raises: triton.runtime.errors.InterpreterError with the kernel's own exception as its cause; CourseError if the
        kernel is compiled, a tensor is not on the CPU, or ``resident`` is less than 1.
    """
    if not hasattr(kernel, "rewrite"):
        raise CourseError(
            "interleaved runs need an interpreted kernel: set COURSE_DEVICE=cpu, start the process again, and pass the kernel"
        )
    if resident < 1:
        raise CourseError(f"resident is {resident}: at least one program has to run")
    for argument in arguments:
        if getattr(getattr(argument, "device", None), "type", "cpu") != "cpu":
            raise CourseError(f"interleaved runs read CPU memory, and a tensor is on {argument.device}: move it with .cpu()")
    with LOCK:
        return _Run(kernel, grid, arguments, constexprs, seed, resident, max_steps).go()


def explore(
    kernel,
    grid,
    make_arguments: Callable[[], Sequence],
    seeds: Iterable[int] = range(20),
    read: Callable[[Sequence], bytes] | None = None,
    **options,
) -> Exploration:
    """Run every seed on the arguments of a new call of ``make_arguments``, which fills all memory the same way each time.

    ``read`` gives the bytes to compare, of the arguments of a finished run; left out, those are all tensors' storages.
    ``options`` are :func:`run`'s, the kernel's constexprs among them. Errors are :func:`run`'s.
    """
    first, differing, complete, reference, tried = None, None, 0, None, []
    for seed in seeds:
        arguments = make_arguments()
        schedule = run(kernel, grid, *arguments, seed=seed, **options)
        tried.append(seed)
        if first is None and schedule.findings:
            first = schedule
        if not schedule.complete:
            continue
        complete += 1
        bits = (read or _storages)(arguments)
        if reference is None:
            reference = seed, bits
        elif differing is None and bits != reference[1]:
            differing = reference[0], seed
    return Exploration(first, differing, complete, tuple(tried))


def _storages(arguments: Sequence) -> bytes:
    storages = [argument.untyped_storage() for argument in arguments if hasattr(argument, "untyped_storage")]
    if not storages:
        raise CourseError("explore() found no tensor among the arguments to compare: pass read=, a function that returns the bytes")
    return b"".join(ctypes.string_at(storage.data_ptr(), storage.nbytes()) for storage in storages)


# ---- the scheduler -----------------------------------------------------------------------------------------------------


class _Stop(BaseException):
    """Ends a program's thread from inside. Not an Exception: the interpreter wraps those."""


class _Program:
    """A started program: its thread, its clock, and what is known about its spinning."""

    def __init__(self, number: int, count: int, body: Callable[[_Program], None]):
        self.number = number
        self.clock = np.zeros(count, np.int32)  # the last step of each program that is ordered before this one's next
        # the same for threads: rows are this program's one thread and all its threads, columns those of every program in turn
        self.threads = np.zeros((2, 2 * count), np.int32)
        self.baton = threading.Lock()
        self.baton.acquire()
        self.spin = _Spin()
        # the launching cell's context: where its prints go, and NumPy's error state
        self.thread = threading.Thread(target=contextvars.copy_context().run, args=(body, self), daemon=True)
        self.awake = False

    def wake(self) -> None:
        if self.awake:
            self.baton.release()
        else:
            self.awake = True
            self.thread.start()


class _Run:
    def __init__(self, kernel, grid, arguments, constexprs, seed, resident, max_steps):
        import inspect

        from triton.runtime.interpreter import GridExecutor, _implicit_cvt, interpreter_builder

        self.builder = interpreter_builder
        self.function = kernel.rewrite()
        names = set(inspect.getfullargspec(self.function).args)  # num_warps and the like mean nothing here
        bound = inspect.getcallargs(self.function, *arguments, **{k: v for k, v in constexprs.items() if k in names})
        fixed = GridExecutor(self.function, kernel.arg_names, ()).constexprs
        self.arguments = {name: value if name in fixed else _implicit_cvt(value) for name, value in bound.items()}
        sizes = tuple(grid(self.arguments) if callable(grid) else grid)
        if not 1 <= len(sizes) <= 3:
            raise CourseError(f"the grid {sizes} has {len(sizes)} dimensions: one to three can be launched")
        self.sizes = (*sizes, 1, 1)[:3]
        programs = tuple(product(*(range(size) for size in self.sizes)))
        self.schedule = Schedule(
            kernel=kernel.__name__, seed=seed, resident=resident, programs=programs, arguments=tuple(_pointers(self.arguments))
        )
        self.max_steps = max_steps
        self.random = random.Random(seed)
        self.waiting_room = list(range(len(programs)))
        self.random.shuffle(self.waiting_room)
        self.residents: list[_Program] = []
        self.all: list[_Program] = []
        self.running: _Program | None = None
        self.races = _Races(self.schedule)
        self.over = threading.Semaphore(0)
        self.stopping = False
        self.error: tuple[int, BaseException] | None = None

    def go(self) -> Schedule:
        from triton.runtime.errors import InterpreterError
        from triton.runtime.interpreter import _patch_lang

        patched = _patch_lang(self.function)
        try:
            self.builder.set_grid_dim(*self.sizes)
            with hooks.observing(self.pause):
                self.run_threads()
        finally:
            patched.restore()
        if self.error:
            number, cause = self.error
            raised = InterpreterError(repr(cause))
            raised.add_note(f"{self.schedule.name(number)} of {self.schedule.kernel}, seed {self.schedule.seed}")
            raise raised from cause
        self.schedule.races, self.schedule.no_barrier = self.races.found()
        return self.schedule

    def run_threads(self) -> None:
        """Returns, or raises what interrupted it, when the last thread has ended."""
        first = self.draw()
        if first is None:
            return
        self.running = first
        try:
            first.wake()
            self.over.acquire()
        except BaseException:
            self.stopping = True
            if first.thread.ident is not None:
                self.over.acquire()  # released by the running program, at its next operation or its end
            raise
        finally:
            self.stopping = True
            started = [program for program in self.all if program.thread.ident is not None]
            for program in started:
                if program.baton.locked():
                    program.baton.release()
            for program in started:
                program.thread.join()

    def body(self, program: _Program) -> None:
        """A program's thread."""
        try:
            self.builder.set_grid_idx(*self.schedule.programs[program.number])
            self.function(**self.arguments)
            self.residents.remove(program)
            self.schedule.finished.append(program.number)
            if not self.stopping and (following := self.draw()) is not None:
                self.running = following
                following.wake()
                return
        except _Stop:
            pass
        except BaseException as error:
            self.error = program.number, error
        self.over.release()

    def pause(self, access: hooks.Access) -> None:
        """The observer: another program may go first; then the operation is recorded, and happens on return."""
        file, line = hooks.line_of_kernel() or ("", 0)
        program = self.running
        following = None if self.stopping else self.draw()
        if following is not program:
            if following is None:
                self.over.release()
            else:
                self.running = following
                following.wake()
            program.baton.acquire()
            self.builder.set_grid_idx(*self.schedule.programs[program.number])
        if self.stopping:
            raise _Stop
        self.record(program, access, file, line)

    def draw(self) -> _Program | None:
        """Who makes the next step; None if the run is over."""
        while self.waiting_room and len(self.residents) < self.schedule.resident:
            number = self.waiting_room.pop()
            program = _Program(number, len(self.schedule.programs), self.body)
            self.residents.append(program)
            self.all.append(program)
            self.schedule.started.append(number)
        if not self.residents:
            return None
        able = [program for program in self.residents if not program.spin.stuck]
        if not able:
            self.schedule.deadlock = self.deadlock()
            return None
        if len(self.schedule.steps) >= self.max_steps:
            self.schedule.limit = self.limit()
            return None
        return able[int(self.random.random() * len(able))]

    def record(self, program: _Program, access: hooks.Access, file: str, line: int) -> None:
        live = access.live().ravel()
        lanes, size = live.size, 0
        address = int(live[0]) if lanes else 0
        if lanes > 1:
            live = _sorted(live)
            address, size = int(live[0]), int(live[-1]) - int(live[0]) + access.itemsize
        elif lanes:
            size = access.itemsize
        changed, wrote = _effect(access) if lanes else (False, False)
        step = Step(program.number, access.kind, line, file, address, size, lanes, changed)
        self.schedule.steps.append(step)
        if lanes:
            self.races.step(len(self.schedule.steps), step, access, wrote, live, program)
        elif access.kind == "barrier":
            self.races.barrier(len(self.schedule.steps), program)
        if changed:
            program.spin.forget()
            for other in self.residents:
                if other is not program:
                    other.spin.written(address, size)
        else:
            program.spin.seen(step)

    def deadlock(self) -> Deadlock:
        schedule = self.schedule
        done, waits = set(schedule.finished), []
        for program in self.residents:
            step = program.spin.waits_at()
            holder = self.races.last_change(step.address, step.size)
            if holder is None:
                who = "nobody has changed it"
            else:
                state = "has finished" if holder.program in done else "waits too"
                state = "is this very program" if holder.program == program.number else state
                who = f"{schedule.name(holder.program)} changed it last, at line {holder.line} ({_verb(holder)}), and {state}"
            where = schedule.place(step.address)
            message = f"{schedule.name(program.number)} waits at line {step.line} ({_verb(step)} on {where}): {who}"
            waits.append(Wait(step, where, holder, message))
        left = tuple(sorted(self.waiting_room))
        slots = "" if not left else f" {len(left)} more cannot start: all {schedule.resident} slots are taken."
        message = f"Deadlock in {schedule.kernel}: nobody can go on. {'; '.join(wait.message for wait in waits)}.{slots}"
        return Deadlock(tuple(waits), left, message)

    def limit(self) -> str:
        return (
            f"Not finished after {self.max_steps} steps: {len(self.schedule.finished)} of {len(self.schedule.programs)} programs are done. "
            "No deadlock could be proved: either this is a long run, and max_steps is to be raised, or the programs keep "
            "one another busy forever (a livelock)."
        )


def _pointers(arguments: dict) -> Iterator[tuple[str, int, int]]:
    for name, value in arguments.items():
        element = getattr(getattr(value, "dtype", None), "element_ty", None)
        if element is not None and hasattr(value, "handle"):
            yield name, int(value.handle.data.flat[0]), max(1, element.primitive_bitwidth // 8)


def _sorted(addresses: np.ndarray) -> np.ndarray:
    """Ascending and without repetition. Most blocks are so already."""
    return addresses if (addresses[1:] > addresses[:-1]).all() else np.unique(addresses)


def _verb(step: Step) -> str:
    if step.kind in ("load", "store"):
        return step.kind
    return "atomic_" + {"fadd": "add", "umax": "max", "umin": "min"}.get(step.kind, step.kind)


def _memory(access: hooks.Access, dtype: np.dtype) -> np.ndarray:
    """What stands in the access's live lanes now, in its shape; 0 in the others."""
    from triton.runtime.interpreter import _interpreter

    pointers = np.ascontiguousarray(access.addresses).astype(np.uint64, copy=False)
    return _interpreter.load(pointers, np.ascontiguousarray(access.mask), np.zeros(pointers.shape, dtype), dtype)


def _effect(access: hooks.Access) -> tuple[bool, bool]:
    """Of an operation that is about to happen: whether it may change a bit of memory, and whether it writes at all.

    A plain store is taken to change what it writes to.
    """
    if not access.is_atomic:
        return access.writes, access.writes
    values = np.asarray(access.values)
    old = _memory(access, values.dtype)
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


# ---- spinning ----------------------------------------------------------------------------------------------------------

_CYCLE = 8  # operations in the longest spin loop that is recognised


class _Spin:
    """Proof that a program goes round in circles, and until when.

    The operation it started looking from is the anchor. Met again, its variables are kept; met a third time with equal
    variables and with all bytes read in between untouched, the next turn can only be the same one. A line that has been
    an anchor of such a proof before has its variables kept at once, so a wait on a busy lock is short.
    """

    def __init__(self):
        self._known: set[tuple[str, int]] = set()
        self.forget()

    def forget(self) -> None:
        """Something has changed: the program may get out of its loop."""
        self.stuck = False
        self._turn: list[Step] = []  # since the anchor, the anchor first
        self._state = None

    def seen(self, step: Step) -> None:
        """The program is about to make ``step``, which changes nothing. Called from its own thread."""
        if self.stuck:
            return
        again = bool(self._turn) and self._turn[0] == step
        if not again and self._turn and len(self._turn) < _CYCLE:
            self._turn.append(step)
            return
        place = step.file, step.line
        state = _variables() if again or place in self._known else None
        if again and state == self._state:
            self.stuck = True
            self._known.add(place)
        else:
            self._turn, self._state = [step], state

    def written(self, address: int, size: int) -> None:
        """Another program changes bytes in this range: does this one read them?"""
        if any(step.address < address + size and address < step.address + step.size for step in self._turn):
            self.forget()

    def waits_at(self) -> Step:
        """The operation of the loop that a person would call the wait: the first atomic, or else the first read."""
        reads = [step for step in self._turn if step.lanes]
        return next((step for step in reads if step.kind != "load"), reads[0] if reads else self._turn[0])


_FIXED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


def _variables() -> list:
    """Place and local variables of every frame of the kernel, comparable by ==."""
    frames, frame = [], sys._getframe(1)
    while frame is not None and frame.f_code is not _Run.body.__code__:
        if not frame.f_code.co_filename.startswith(hooks._MACHINERY):
            frames.append((frame.f_code, frame.f_lasti, {name: _frozen(value) for name, value in frame.f_locals.items()}))
        frame = frame.f_back
    return frames


def _frozen(value):
    """A value that equals another one only if both mean the same to the kernel; what is not known never does."""
    import triton.language as tl

    data = getattr(getattr(value, "handle", None), "data", None)
    if isinstance(data, np.ndarray):
        return str(value.dtype), data.shape, data.tobytes()
    if isinstance(value, (bool, int, float, str, type(None), tl.dtype)):
        return type(value), value
    if isinstance(value, tl.constexpr):
        return _frozen(value.value)
    if isinstance(value, tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, _FIXED) or hasattr(value, "rewrite"):
        return id(value)
    return object()


# ---- happens-before ----------------------------------------------------------------------------------------------------

_LOAD, _STORE, _ATOMIC_READ, _ATOMIC_WRITE = range(4)
_CONFLICTS = {
    _LOAD: (_STORE, _ATOMIC_WRITE),
    _STORE: (_LOAD, _STORE, _ATOMIC_READ, _ATOMIC_WRITE),
    _ATOMIC_READ: (_STORE,),
    _ATOMIC_WRITE: (_LOAD, _STORE),
}
_PAGE = 4096  # bytes
_ONE, _ALL = range(2)  # who does an operation: one thread of the program, or all of them


class _Track:
    """The last step, of one kind, that one thread or all threads of one program made on each byte of a page; 0 for none."""

    __slots__ = ("high", "last", "low", "steps")

    def __init__(self):
        self.steps = np.zeros(_PAGE, np.int32)
        self.last, self.low, self.high = 0, _PAGE, 0


class _Races:
    """Vector clocks over steps: the clock of a program holds, per program, the last step ordered before its next one."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.pages: dict[int, tuple[dict[int, _Track], ...]] = {}
        self.released: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by address: the clocks that an acquire there takes over
        self.changed_by_atomic: dict[int, int] = {}
        self.pairs: dict[tuple, Race | NoBarrier] = {}
        self.times: dict[tuple, int] = {}

    def step(self, now: int, step: Step, access: hooks.Access, wrote: bool, live: np.ndarray, program: _Program) -> None:
        """Step number ``now`` (from 1) is about to happen. ``live``: its addresses, ascending, none twice."""
        who = _ALL if access.addresses.size > 1 else _ONE
        if access.is_atomic:
            how = _ATOMIC_WRITE if wrote else _ATOMIC_READ
            self.synchronise(now, step, access.sem, wrote, live, program, who)
        elif access.sem == "relaxed":
            how = _ATOMIC_READ
        else:
            how = _STORE if wrote else _LOAD
        clock, threads = program.clock, program.threads[who]
        for page, low, high, index in _spans(live, access.itemsize):
            tracks = self.pages.get(page)
            if tracks is None:
                tracks = self.pages[page] = ({}, {}, {}, {})
            for other in _CONFLICTS[how]:
                for thread, track in tracks[other].items():
                    # ordered as a whole, or elsewhere in the page: most of them
                    if thread // 2 == step.program or track.last <= threads[thread] or track.high <= low or high <= track.low:
                        continue
                    seen = track.steps[index]
                    unordered = seen > clock[thread // 2]
                    if unordered.any():
                        self.report(page, index, seen, unordered, step, access)
                    unfenced = (seen > threads[thread]) & ~unordered
                    if unfenced.any():
                        self.report_no_barrier(page, index, seen, unfenced, step)
            track = tracks[how].get(2 * step.program + who)
            if track is None:
                track = tracks[how][2 * step.program + who] = _Track()
            track.steps[index] = now
            track.last, track.low, track.high = now, min(track.low, low), max(track.high, high)

    def barrier(self, now: int, program: _Program) -> None:
        """All threads of the program have got here, at step ``now``, and know what any of them did before."""
        program.threads[:] = _together(now, program)

    def synchronise(self, now: int, step: Step, sem: str, wrote: bool, live: np.ndarray, program: _Program, who: int) -> None:
        addresses = live.tolist()
        # a block's lanes mostly share one pair of clocks
        there = list({id(clocks): clocks for clocks in map(self.released.get, addresses) if clocks is not None}.values())
        if sem not in ("relaxed", "release"):
            for clock, threads in there:
                np.maximum(program.clock, clock, out=program.clock)
                np.maximum(program.threads, threads, out=program.threads)  # both rows: the result goes to all threads
        if wrote and sem not in ("relaxed", "acquire"):
            program.clock[step.program] = now
            known = program.threads[_ONE].copy() if who == _ONE else _together(now, program)
            known[2 * step.program + _ONE] = now
            clocks = np.maximum.reduce([program.clock, *(clock for clock, _ in there)])
            self.released.update(dict.fromkeys(addresses, (clocks, np.maximum.reduce([known, *(threads for _, threads in there)]))))
        if step.changed:
            self.changed_by_atomic.update(dict.fromkeys(addresses, now))

    def report(self, page: int, index, seen: np.ndarray, unordered: np.ndarray, step: Step, access: hooks.Access) -> None:
        schedule = self.schedule
        for _, first, address, where, key in self.new_pairs("race", page, index, seen, unordered, step):
            same = first.kind == step.kind == "store" and _stores_what_is_there(access, address)
            equal = " Both store the same value there: the result does not show it, and it is a race all the same." if same else ""
            message = (
                f"Race on {where}: {schedule.name(first.program)} at line {first.line} ({_verb(first)}) and "
                f"{schedule.name(step.program)} at line {step.line} ({_verb(step)}), with nothing that orders them.{equal}"
            )
            self.pairs[key] = Race(first, step, address, where, same, 1, message)

    def report_no_barrier(self, page: int, index, seen: np.ndarray, unfenced: np.ndarray, step: Step) -> None:
        schedule = self.schedule
        for earlier, first, address, where, key in self.new_pairs("no barrier", page, index, seen, unfenced, step):
            later = (s for s in schedule.steps[earlier:-1] if s.program == first.program and s.lanes == 1)
            release = next((s for s in later if s.kind not in ("load", "store")), None)
            goes_on = f"one of them does the {_verb(release)} at line {release.line}" if release else "one of them goes on"
            message = (
                f"All threads of {schedule.name(first.program)} {first.kind} at line {first.line}, {goes_on}, and no barrier makes it wait "
                f"for the others: {schedule.name(step.program)} at line {step.line} ({_verb(step)} on {where}) can come before that."
            )
            self.pairs[key] = NoBarrier(first, release, step, address, where, 1, message)

    def new_pairs(
        self, kind: str, page: int, index, seen: np.ndarray, unordered: np.ndarray, step: Step
    ) -> Iterator[tuple[int, Step, int, str, tuple]]:
        """Earlier steps that nothing orders before this one, of lines that have not been paired with its line yet; counts them all."""
        for earlier in np.unique(seen[unordered]).tolist():
            first = self.schedule.steps[earlier - 1]
            lane = int(np.flatnonzero(unordered & (seen == earlier))[0])
            offset = index.start + lane if isinstance(index, slice) else int(index[lane])
            address = page * _PAGE + offset
            where = self.schedule.place(address)
            key = kind, first.file, first.line, first.kind, step.file, step.line, step.kind, where.split("[")[0]
            self.times[key] = self.times.get(key, 0) + 1
            if key not in self.pairs:
                yield earlier, first, address, where, key

    def found(self) -> tuple[list[Race], list[NoBarrier]]:
        counted = [replace(pair, times=self.times[key]) for key, pair in self.pairs.items()]
        return [pair for pair in counted if isinstance(pair, Race)], [pair for pair in counted if isinstance(pair, NoBarrier)]

    def last_change(self, address: int, size: int) -> Step | None:
        """The last step that changed one of these bytes: a plain store, or an atomic that took effect."""
        last = max((step for at, step in self.changed_by_atomic.items() if address <= at < address + size), default=0)
        for page, _, _, index in _spans(np.arange(address, address + size), 1):
            for track in self.pages.get(page, ({}, {}))[_STORE].values():
                last = max(last, int(track.steps[index].max()))
        return self.schedule.steps[last - 1] if last else None


def _together(now: int, program: _Program) -> np.ndarray:
    """What the threads of a program know between them, at its step ``now``."""
    known = program.threads.max(axis=0)
    known[2 * program.number : 2 * program.number + 2] = now
    return known


def _spans(live: np.ndarray, itemsize: int) -> Iterator[tuple[int, int, int, slice | np.ndarray]]:
    """The bytes of ascending addresses, page by page: page, lowest byte in it, one past the highest, an index."""
    first, end = int(live[0]), int(live[-1]) + itemsize
    page, last = first // _PAGE, (end - 1) // _PAGE
    if live.size == 1 or (end - first == live.size * itemsize and (live[1:] - live[:-1] == itemsize).all()):
        for here in range(page, last + 1):
            low, high = max(first - here * _PAGE, 0), min(end - here * _PAGE, _PAGE)
            yield here, low, high, slice(low, high)
        return
    touched = (live[:, None] + np.arange(itemsize)).ravel()
    pages = touched // _PAGE
    starts = [0, *(np.flatnonzero(pages[1:] != pages[:-1]) + 1).tolist(), touched.size]
    for start, stop in pairwise(starts):
        here = int(pages[start])
        index = touched[start:stop] - here * _PAGE
        yield here, int(index[0]), int(index[-1]) + 1, index


def _stores_what_is_there(access: hooks.Access, address: int) -> bool:
    """Whether a store brings to the element at ``address`` the bits that stand there."""
    lanes = (access.addresses <= address) & (address < access.addresses + access.itemsize) & access.mask
    if access.values is None or not lanes.any():
        return False
    element = int(access.addresses[lanes][0])
    return ctypes.string_at(element, access.itemsize) == np.broadcast_to(access.values, lanes.shape)[lanes][0].tobytes()
