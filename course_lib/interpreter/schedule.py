"""Run the programs of an interpreted kernel interleaved, and find the races and deadlocks that the
order of launch hides.

The stock interpreter runs one program after the other, so that a race gives the right sum, and a
wait for a later program never ends. Here a seeded scheduler may change to another program at every
memory operation. The operation itself is not divided: no other program sees half of the store of a
block.

**Programs** are generators that yield before a memory operation. At each yield the scheduler draws
the program that goes on. The draw depends on the seed alone, so that a seed gives the same schedule
and the same bits every time. rewriting.py makes the generators, scheduler.py runs them.

**Races** are found by happens-before, and need no unlucky order: two accesses of different programs
to the same byte, of which at least one is a write and not both are atomic, without a chain of
synchronisation between them. An atomic with release semantics, followed by one with acquire
semantics on the same address, is a link of such a chain (Triton's default, acq_rel, is both;
"relaxed" is neither; a compare-and-swap that fails only acquires). A volatile load is a relaxed
atomic load, as PTX defines it. Lockset methods are not used, because they report correct kernels
with tickets and flags as races. The links are those of this schedule: to see a wrong order of
another schedule may need another seed. happens_before.py has the clocks.

**Deadlocks** are proved, and need no time limit. A program that returns to the same operation with
the same values in all of its variables, while the bytes that it read in between are unchanged, will
do so forever: it is set aside until another program writes to those bytes. When all resident
programs are set aside, no program can write to them. A wait that gives up after some tries is
therefore no deadlock, and a wait costs few steps. There is no proof for a spin loop that counts its
turns, has a variable of an unknown type, or stores: it ends at the step limit. spinning.py has the
proof.

**Barriers.** Here the operations of one program happen in order, each one undivided. On a GPU a
program has many threads: one of them stores a single number, or does an atomic on one, and all of
them load and store blocks. Every program therefore has two clocks, one for that thread and one for
all threads. An atomic on a single number releases only what its own thread has done or acquired;
``tl.debug_barrier()`` adds the stores of the other threads. A pair of accesses that is ordered if
each program is one thread, and not ordered if it is many, is a missing barrier, and is reported
apart from the races. A load or store of a block whose mask leaves lane 0 alone counts as one of the
one thread: that lane is in it.

An atomic on a single number whose result the program reads is a barrier, too: the compiler gives
the result to all threads through shared memory, with a ``bar.sync`` behind the atomic. If nothing
reads the result, the other threads do not wait, and what the one thread has acquired they have not.

A single number is loaded by each thread for itself. If one thread writes that number, before or
after, and no barrier lies between, the threads may find different numbers: this is a missing
barrier inside one program. It is reported only if all threads store a block, or do an atomic on
one, after the load. Otherwise the number reaches memory through the one thread alone, and its own
accesses are in order.

**Limits.** A reduction is no barrier here, although the compiled one has a ``bar.sync`` where its
result goes from one warp to another. A call of a helper is looked into for its own atomics; whether
a caller reads what a helper returns is not known, so it counts as read. That threads of a program
of single numbers may wait for different numbers, and one of them for ever, is not looked for. An
``atomic_add`` of 0 with "acquire" whose result nothing reads counts as an acquire of one thread;
Triton 3.6 and 3.7 leave it out. Atomics on a whole block count as if they ordered the whole
program. An atomic of scope "cta" is a plain load and store for other programs, as PTX's memory
model has it: two atomics of which one leaves the other's program out of its scope are a race. An
endless loop without a memory operation never returns to the scheduler; an interrupt ends it.

**Kernels whose programs wait for one another** never end if the programs run one after another.
Such a kernel has an attribute, ``resident_programs``: the name of the constexpr with the number of
programs that have to be resident at once. Its ordinary launch ``kernel[grid](...)`` is then an
interleaved run, see :func:`interleave_waiting_programs`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.interpreter.findings import Schedule
from course_lib.interpreter.lock import LOCK
from course_lib.interpreter.scheduler import Scheduler

MAX_STEPS = 200_000


@dataclass(frozen=True)
class ScheduleExploration:
    """The result of one launch with several seeds. ``schedule`` is the first schedule with a
    finding; None if there is none.

    ``differing`` has two seeds whose complete runs left different bits; None if all runs agree.
    ``complete`` is the number of complete runs, which were compared.
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
        arguments: PyTorch tensors on the CPU and numbers, or the pointers that
            :mod:`course_lib.interpreter.launch` makes.
        seed: determines the order in which programs start, and the program that makes each step.
        resident: the largest number of unfinished programs at one time; a GPU has room for a
            limited number.
        max_steps: a run ends after so many steps if it has neither finished nor been proved to be a
            deadlock.
        patience: the number of steps, in the whole run, in which a program goes first because its
            last atomic had no effect. A wait that gives up after fewer tries then gives up while
            the other programs stand still. Any other wait is proved after a few steps.
        order: the programs that make the first steps, before the seed chooses; a program that has
            ended or is not resident is skipped.

    The tensors keep what the run wrote, also after a deadlock. No thread is left.

    Raises: triton.runtime.errors.InterpreterError with the kernel's own exception as its cause;
        CourseError if the kernel is compiled, a tensor is not on the CPU, or ``resident`` is less
        than 1.
    """
    if not hasattr(kernel, "rewrite"):
        raise CourseError(
            _(
                "interleaved runs need an interpreted kernel: set COURSE_DEVICE=cpu, start the"
                " process again, and pass the kernel"
            )
        )
    if resident < 1:
        raise CourseError(
            _("resident is {resident}: at least one program has to run").format(resident=resident)
        )
    for argument in arguments:
        if getattr(getattr(argument, "device", None), "type", "cpu") != "cpu":
            words = _(
                "interleaved runs read CPU memory, and a tensor is on {device}: move it with .cpu()"
            )
            raise CourseError(words.format(device=argument.device))
    with LOCK, np.errstate(all="ignore"):
        return Scheduler(
            kernel, grid, arguments, constexprs, seed, resident, max_steps, patience, order
        ).run()


def explore(
    kernel,
    grid,
    make_arguments: Callable[[], Sequence],
    seeds: Iterable[int] = range(20),
    read: Callable[[Sequence], bytes] | None = None,
    **options,
) -> ScheduleExploration:
    """Run the kernel once per seed, each time with the arguments of a new call of
    ``make_arguments``, which fills all memory equally.

    ``read`` returns the bytes to compare from the arguments of a finished run; without it they are
    those of all tensors. ``options`` are those of :func:`run`, with the constexprs of the kernel.
    The errors are those of :func:`run` as well.
    """
    first_fault, differing, complete, reference, tried = None, None, 0, None, []
    for seed in seeds:
        arguments = make_arguments()
        schedule = run(kernel, grid, *arguments, seed=seed, **options)
        tried.append(seed)
        if first_fault is None and schedule.findings:
            first_fault = schedule
        if not schedule.complete:
            continue
        complete += 1
        bits = (read or _read_storages)(arguments)
        if reference is None:
            reference = seed, bits
        elif differing is None and bits != reference[1]:
            differing = reference[0], seed
    return ScheduleExploration(first_fault, differing, complete, tuple(tried))


def _read_storages(arguments: Sequence) -> bytes:
    storages = [
        argument.untyped_storage() for argument in arguments if hasattr(argument, "untyped_storage")
    ]
    if not storages:
        raise CourseError(
            "explore() found no tensor among the arguments to compare: pass read=, a function that"
            " returns the bytes"
        )
    return b"".join(ctypes.string_at(storage.data_ptr(), storage.nbytes()) for storage in storages)


def interleave_waiting_programs() -> None:
    """Interleave every interpreted launch of a kernel that has ``resident_programs``, with so many
    programs at once.

    Such a launch raises triton.runtime.errors.InterpreterError if its programs wait for one another
    forever.

    Raises: AttributeError if this Triton's interpreter has no InterpretedFunction.
    """
    from triton.runtime.errors import InterpreterError
    from triton.runtime.interpreter import InterpretedFunction

    stock_run = InterpretedFunction.run

    def launch(self, *arguments, grid, warmup, **named):
        count = getattr(self, "resident_programs", None)
        if count is None or warmup:
            return stock_run(self, *arguments, grid=grid, warmup=warmup, **named)
        # An endless wait is proved, so that no step limit is needed. A long run has many steps.
        outcome = run(self, grid, *arguments, resident=named[count], max_steps=sys.maxsize, **named)
        if outcome.deadlock is not None:
            raise InterpreterError(outcome.deadlock.message)

    InterpretedFunction.run = launch
