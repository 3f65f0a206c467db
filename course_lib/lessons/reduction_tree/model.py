"""Lesson 04: many numbers become one sum. Which thread adds which partner's, through shared memory or by shuffles: what is shown, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons.words import format_count, format_number

WAYS = {"shared": "shared memory", "shuffle": "warp shuffles"}
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16)}
COUNTS = (1, 5, 8, 13, 16, 24, 32)
THREADS = (2, 4, 8, 16)
WARPS = (4, 8, 16)
DATA = {"counting": "1, 2, 3, ...", "near_ten": "near 10"}
_SEED = 4


@dataclass(frozen=True)
class ReductionStep:
    """What every thread does at the same time.

    ``kind``: "own" (a thread adds a value that only it reads), "shared" (it adds a partner's number, read from shared
    memory), "shuffle" (it adds a partner's number, straight from the partner's register), "meet" (each warp writes its sum
    to shared memory, all wait, and thread t reads that of warp t) or "share" (thread 0 writes the sum, all wait, all read).

    ``partners`` has for each thread what it takes: the index of a value ("own"), of a warp ("meet"), else of a thread; None
    is idle. ``held`` is what each thread holds afterwards.
    """

    kind: str
    stride: int
    partners: tuple[int | None, ...]
    held: tuple[float, ...]

    @property
    def working(self) -> int:
        return sum(partner is not None for partner in self.partners)

    @property
    def idle(self) -> int:
        return len(self.partners) - self.working

    @property
    def barriers(self) -> int:
        """Shared memory may be read only when every thread has written."""
        return int(self.kind in ("shared", "meet", "share"))


@dataclass(frozen=True)
class Reduction:
    """One sum from beginning to end. ``loaded`` is what each thread holds first: its own first value, or 0."""

    values: tuple[float, ...]
    threads: int
    way: str
    warp: int
    dtype: str
    loaded: tuple[float, ...]
    steps: tuple[ReductionStep, ...]

    @property
    def sum(self) -> float:
        return (self.steps[-1].held if self.steps else self.loaded)[0]

    @property
    def additions(self) -> tuple[ReductionStep, ...]:
        """The steps that add; "meet" and "share" only hand numbers on."""
        return tuple(step for step in self.steps if step.kind not in ("meet", "share"))

    @property
    def barriers(self) -> int:
        return sum(step.barriers for step in self.steps)

    @property
    def idle(self) -> int:
        """Over all steps that add, how many threads had nothing to do."""
        return sum(step.idle for step in self.additions)

    @property
    def sequential(self) -> float:
        """The same values, added one after the other in the same dtype."""
        kind = DTYPES[self.dtype].type
        running = kind(self.values[0])
        for value in self.values[1:]:
            running = kind(running + kind(value))
        return float(running)

    @property
    def exact(self) -> float:
        return float(np.sum(np.array(self.values, dtype=np.float64)))


def model(values: ArrayLike, threads: int, way: str = "shared", warp: int = 32, dtype: str = "fp32") -> Reduction:
    """Add up ``values`` with ``threads`` threads, every addition rounded to ``dtype``.

    First each thread adds up the values t, t + threads, t + 2 threads, ...: its own. Then the threads meet.

    - "shared": in each step thread t below the stride adds the number of thread t + stride, and the stride halves.
    - "shuffle": in each step every thread t adds the number of thread t xor stride, so that all end with the sum. That
      works inside a warp. Several warps leave their sums in shared memory, the first threads add those up by shuffles,
      and the total goes back to all through shared memory: what Triton makes of ``tl.sum``.

    Args:
        values: shape (n,), n >= 1; rounded to dtype first.
        threads, warp: powers of two; ``warp`` threads share a warp (32 on every NVIDIA GPU). At most ``warp`` warps, so that
            one warp can add up the sums of all.

    Raises: CourseError if an argument is none of those.
    """
    values = np.asarray(values)
    if values.ndim != 1 or not values.size:
        raise CourseError(
            f"the reduction tree adds up a row of at least one number; this one has shape {values.shape}."
        )
    if threads < 1 or threads & (threads - 1) or warp < 1 or warp & (warp - 1):
        raise CourseError(f"threads and the threads of a warp are powers of two; you asked for {threads} and {warp}.")
    if way == "shuffle" and threads > warp * warp:
        raise CourseError(
            f"one warp of {warp} threads adds up the sums of at most {warp} warps; {threads} threads are {threads // warp}."
        )
    if way not in WAYS or dtype not in DTYPES:
        raise CourseError(
            f"the ways are {', '.join(WAYS)} and the dtypes {', '.join(DTYPES)}; you asked for {way!r} and {dtype!r}."
        )
    values = values.astype(DTYPES[dtype])
    held = np.zeros(threads, dtype=DTYPES[dtype])
    first = values[:threads]
    held[: first.size] = first
    loaded, steps = _numbers(held), []

    for start in range(threads, values.size, threads):
        own = values[start : start + threads]
        held = held.copy()
        held[: own.size] += own
        steps.append(ReductionStep("own", start, _shift_partners(own.size, threads, start), _numbers(held)))
    steps += _through_shared_memory(held) if way == "shared" else _by_shuffles(held, warp)
    return Reduction(_numbers(values), threads, way, warp, dtype, loaded, tuple(steps))


def _through_shared_memory(held: np.ndarray) -> list[ReductionStep]:
    steps, stride = [], held.size // 2
    while stride:
        held = held.copy()
        held[:stride] += held[stride : 2 * stride]
        steps.append(ReductionStep("shared", stride, _shift_partners(stride, held.size, stride), _numbers(held)))
        stride //= 2
    return steps


def _by_shuffles(held: np.ndarray, warp: int) -> list[ReductionStep]:
    steps: list[ReductionStep] = []
    threads, warps = np.arange(held.size), held.size // warp

    def swaps(held: np.ndarray, width: int, active: int) -> np.ndarray:
        stride = width // 2
        while stride:
            held = np.where(threads < active, held + held[threads ^ stride], held)
            steps.append(ReductionStep("shuffle", stride, _list_partners(threads ^ stride, active), _numbers(held)))
            stride //= 2
        return held

    held = swaps(held, min(warp, held.size), held.size)
    if warps > 1:
        held = held[threads % warps * warp]
        steps.append(ReductionStep("meet", 0, _list_partners(threads, warps), _numbers(held)))
        held = swaps(held, warps, warps)
        steps.append(ReductionStep("share", 0, (0,) * held.size, _numbers(np.full_like(held, held[0]))))
    return steps


def _list_partners(partners: np.ndarray, active: int) -> tuple[int | None, ...]:
    return tuple(int(partner) if thread < active else None for thread, partner in enumerate(partners))


def _shift_partners(count: int, threads: int, shift: int) -> tuple[int | None, ...]:
    return tuple(t + shift if t < count else None for t in range(threads))


def _numbers(held: np.ndarray) -> tuple[float, ...]:
    return tuple(float(number) for number in held)


def title(made: Reduction, done: int) -> str:
    """The message of the picture after ``done`` steps."""
    n = len(made.values)
    if not done:
        return f"{format_count(n, 'value')} for {made.threads} threads: {_first(made)}"
    step = made.steps[done - 1]
    if done == len(made.steps):
        adding = len(made.additions)
        cost = f"instead of {n - 1}" if adding < n - 1 else f"where one thread needs {n - 1}"
        return f"{format_count(adding, 'step')} of additions {cost}: the sum is {format_number(made.sum, 6)}"
    if step.kind == "meet":
        return f"{_step(made, done)}: {made.threads // made.warp} warps leave their sums in shared memory"
    if step.kind == "shuffle" and not step.idle:
        return f"{_step(made, done)}: every thread t adds the number of thread t xor {step.stride}"
    return f"{_step(made, done)}: {format_count(step.working, 'thread')} {'adds' if step.working == 1 else 'add'}, {step.idle} idle"


def describe(made: Reduction, done: int) -> str:
    """The caption: who adds what in this step, and at the end what it cost and what rounding made of it."""
    words = [f"{format_count(len(made.values), 'value')}, {made.threads} threads, {WAYS[made.way]}, {made.dtype}."]
    if not done:
        words.append(
            "Thread t starts with value t."
            + (" Threads without one start with 0." if len(made.values) < made.threads else "")
        )
    else:
        words.append(_described(made, done))
    if done == len(made.steps) and made.steps:
        words.append(_describe_cost(made))
    return " ".join(words)


def _described(made: Reduction, done: int) -> str:
    step, count = made.steps[done - 1], made.threads
    head = f"{_step(made, done)}"
    if step.kind == "own":
        idle = f"; {_describe_idle(step.working, count)} idle" if step.idle else ""
        return f"{head}: {_until_words(step.working)} value t + {step.stride} to a sum of their own{idle}. No thread needs another."
    if step.kind == "shared":
        return (
            f"{head}, stride {step.stride}: {_until_words(step.working)} the number of thread t + {step.stride}, from shared memory; "
            f"{_describe_idle(step.working, count)} idle. Then all wait at a barrier."
        )
    if step.kind == "meet":
        return (
            f"{head}: a shuffle does not leave its warp. So one thread of each of the {step.working} warps writes the warp's sum to shared "
            f"memory, all wait at a barrier, and threads 0 to {step.working - 1} read them."
        )
    if step.kind == "share":
        return f"{head}: thread 0 writes the total to shared memory, all wait at a barrier, and all read it."
    if step.idle:
        return f"{head}, stride {step.stride}: threads 0 to {step.working - 1} add the sums of the warps, by shuffles; the others are idle."
    return (
        f"{head}, stride {step.stride}: thread t adds the number of thread t xor {step.stride}, straight from that thread's register. "
        "Partners do the same addition, so nobody is idle and nobody waits."
    )


def _describe_cost(made: Reduction) -> str:
    n = len(made.values)
    useful = n - 1
    done = sum(step.working for step in made.additions)
    spare = (
        f"{done - useful} of the {done} additions were done twice or added 0"
        if done > useful
        else f"{format_count(done, 'addition')}"
    )
    error, other = abs(made.sum - made.exact), abs(made.sequential - made.exact)
    rounding = (
        f"Sum {format_number(made.sum, 7)}, exact."
        if not error and not other
        else f"Sum {format_number(made.sum, 7)}, off by {error:.2g}; added one after the other {format_number(made.sequential, 7)}, off by {other:.2g}."
    )
    return (
        f"In all: {format_count(len(made.additions), 'step')} where one thread needs {useful}, {spare}, {format_count(made.idle, 'place')} idle, "
        f"{format_count(made.barriers, 'barrier')}. {rounding}"
    )


def _first(made: Reduction) -> str:
    n = len(made.values)
    return f"each starts with {'one of them' if n >= made.threads else 'one or none'}"


def _step(made: Reduction, done: int) -> str:
    return f"Step {done} of {len(made.steps)}"


def _until_words(working: int) -> str:
    return "thread 0 adds" if working == 1 else f"threads t = 0 to {working - 1} add"


def _describe_idle(first: int, threads: int) -> str:
    if first >= threads:
        return "no thread is"
    return f"thread {first} is" if first == threads - 1 else f"threads {first} to {threads - 1} are"


def values_of(kind: str, n: int) -> np.ndarray:
    """The rows that the widget offers: 1, 2, 3, ... and n numbers near 10 that no fp16 holds exactly."""
    if kind == "counting":
        return np.arange(1.0, n + 1)
    return 10 + np.random.Generator(np.random.PCG64(_SEED)).normal(size=n)
