"""Runs the programs of an interpreted kernel interleaved, and finds the races and deadlocks that launch order hides.

The stock interpreter runs one program after the other, so a race gives the right sum and a wait for a later program
hangs. Here every memory operation is a point where a seeded scheduler may go on with another program. The operation
itself is whole: no other program sees half of a block's store.

**How.** Each resident program has a thread, and exactly one of them runs: a pausing thread draws the next program and
wakes it. What is drawn depends on the seed alone, so a seed gives the same schedule and the same bits every time.
scheduler.py has the threads.

**Races** come from happens-before, not from luck: two accesses of different programs to the same byte, at least one a
write, not both atomic, and no chain of synchronisation between them. An atomic with release semantics followed by one
with acquire semantics on the same address makes such a link (Triton's default, acq_rel, is both; "relaxed" is neither; a
compare-and-swap that fails only acquires). A volatile load is a relaxed atomic one, as PTX defines it. Lockset methods were
not taken: they call ticket and flag schemes racy. A link is one that this schedule had: a wrong order that another schedule
shows may need another seed. happens_before.py has the clocks.

**Deadlocks** are proved, not timed. A program that comes back to the same operation with the same values in all its
variables, while the bytes it read on the way are unchanged, does so forever: it is set aside until somebody writes to
those bytes. When all resident programs are set aside, nobody will. So a wait that gives up after a number of tries is
no deadlock, and a wait costs few steps. A spin loop that counts its turns, or keeps something unusual in a variable, or
stores, is not proved: it ends at the step limit. spinning.py has the proof.

**Barriers.** The operations of one program happen in order here, each one whole. On a GPU a program is many threads: one
of them stores a single number, or does an atomic on one, and all of them load and store blocks. So every program has two
clocks, that of the one thread and that of all of them. An atomic on a single number publishes only what its own thread
knows, and ``tl.debug_barrier()`` is what tells it of the others' stores. What is ordered for programs that are one thread
each, and not for programs of many, is a missing barrier, and is reported apart from the races. The way in needs none: the
compiler hands an atomic's result to all threads through shared memory, with a ``bar.sync`` behind the atomic. Nor does a
single number that all threads load: it counts as the one thread's.

**What this cannot see.** Atomics of a whole block are taken to order the whole program. An atomic of scope "cta" orders nothing for other programs.
An endless loop without a memory operation never comes back to the scheduler, and not even an interrupt ends its thread.

**Kernels that need it.** Where programs wait for one another, running them one after another hangs. A kernel says so by an
attribute, ``resident_programs``: the name of the constexpr that is the number of programs that have to be resident at once.
Its ordinary launch ``kernel[grid](...)`` is then an interleaved run, see :func:`interleave_waiting_programs`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.interpreter.findings import Schedule
from course_lib.interpreter.lock import LOCK
from course_lib.interpreter.scheduler import Scheduler

MAX_STEPS = 200_000


@dataclass(frozen=True)
class ScheduleExploration:
    """Several seeds of one launch. ``schedule`` is the first with a finding, None if there was none.

    ``differing``: two seeds whose runs were complete and left different bits, None if all agree. ``complete`` counts the runs
    that were compared.
    """

    schedule: Schedule | None
    differing: tuple[int, int] | None
    complete: int
    seeds: tuple[int, ...]


def run(
    kernel,
    grid,
    *arguments,
    seed: int = 0,
    resident: int = 8,
    max_steps: int = MAX_STEPS,
    patience: int = 0,
    order: Sequence[int] = (),
    **constexprs,
) -> Schedule:
    """Run every program of ``kernel[grid](*arguments, **constexprs)``, interleaved.

    Args:
        kernel: an interpreted ``@triton.jit`` kernel.
        grid: one to three sizes, or a function of the arguments as Triton takes it.
        arguments: PyTorch tensors on the CPU and numbers, or what :mod:`course_lib.interpreter.launch` makes of addresses.
        seed: draws the order in which programs start, and which one makes each step.
        resident: how many unfinished programs there may be at once, as a GPU has room for so many.
        max_steps: where a run ends that is neither done nor provably stuck.
        patience: how many steps, all together, go first to a program whose atomic has just failed to change anything. A wait
            that gives up after fewer tries does so then, while the others stand still. One that does not is soon proved to
            wait, and costs a few steps.
        order: the programs that make the first steps, before the seed draws; one that is done or not resident is passed over.

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
            raise CourseError(
                f"interleaved runs read CPU memory, and a tensor is on {argument.device}: move it with .cpu()"
            )
    with LOCK, np.errstate(all="ignore"):
        return Scheduler(kernel, grid, arguments, constexprs, seed, resident, max_steps, patience, order).run()


def explore(
    kernel,
    grid,
    make_arguments: Callable[[], Sequence],
    seeds: Iterable[int] = range(20),
    read: Callable[[Sequence], bytes] | None = None,
    **options,
) -> ScheduleExploration:
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
        bits = (read or _read_storages)(arguments)
        if reference is None:
            reference = seed, bits
        elif differing is None and bits != reference[1]:
            differing = reference[0], seed
    return ScheduleExploration(first, differing, complete, tuple(tried))


def _read_storages(arguments: Sequence) -> bytes:
    storages = [argument.untyped_storage() for argument in arguments if hasattr(argument, "untyped_storage")]
    if not storages:
        raise CourseError(
            "explore() found no tensor among the arguments to compare: pass read=, a function that returns the bytes"
        )
    return b"".join(ctypes.string_at(storage.data_ptr(), storage.nbytes()) for storage in storages)


def interleave_waiting_programs() -> None:
    """Make an interpreted launch of a kernel that has ``resident_programs`` an interleaved one, with that many programs at once.

    Such a launch raises triton.runtime.errors.InterpreterError if its programs wait for one another forever.

    Raises: AttributeError if this Triton's interpreter has no InterpretedFunction.
    """
    from triton.runtime.errors import InterpreterError
    from triton.runtime.interpreter import InterpretedFunction

    stock_run = InterpretedFunction.run

    def launch(self, *arguments, grid, warmup, **named):
        count = getattr(self, "resident_programs", None)
        if count is None or warmup:
            return stock_run(self, *arguments, grid=grid, warmup=warmup, **named)
        # a wait for ever is proved, so no limit of steps has to end it; a long run has many steps
        outcome = run(self, grid, *arguments, resident=named[count], max_steps=sys.maxsize, **named)
        if outcome.deadlock is not None:
            raise InterpreterError(outcome.deadlock.message)

    InterpretedFunction.run = launch
