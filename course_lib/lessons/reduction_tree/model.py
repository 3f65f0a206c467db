"""Lesson 06: many numbers become one sum. Which thread adds which partner's, through shared memory or by shuffles, as plain data.

``picture.js`` takes the same steps, so that a hand can change the settings; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError

WAYS = {"shared": "shared memory", "shuffle": "warp shuffles"}
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16)}
THREADS = (2, 4, 8, 16)
WARPS = (4, 8, 16)
MOST_VALUES = 32
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


def values_of(kind: str, n: int) -> np.ndarray:
    """The rows that the picture offers: 1, 2, 3, ... and n numbers near 10 that no fp16 holds exactly."""
    if kind == "counting":
        return np.arange(1.0, n + 1)
    return 10 + np.random.Generator(np.random.PCG64(_SEED)).normal(size=n)


def make_data(n: int, threads: int, way: str, warp: int) -> dict[str, Any]:
    """The rows, and the settings at the start.

    Raises: CourseError if an argument is none that there is.
    """
    if not 1 <= n <= MOST_VALUES or threads not in THREADS or warp not in WARPS or way not in WAYS:
        raise CourseError(
            f"the reduction tree draws 1 to {MOST_VALUES} values, {', '.join(map(str, THREADS))} threads, warps of "
            f"{', '.join(map(str, WARPS))} and the ways {', '.join(WAYS)}; "
            f"you asked for n={n}, threads={threads}, warp={warp}, way={way!r}."
        )
    return {
        "start": {
            "n": n, "threads": threads, "way": way, "warp": warp, "row": "counting", "dtype": "fp32", "done": 0, "picked": None,
        },
        "rows": {kind: values_of(kind, MOST_VALUES).tolist() for kind in DATA},
        "names": DATA, "ways": WAYS, "threads": THREADS, "warps": WARPS, "dtypes": tuple(DTYPES),
    }  # fmt: skip
