"""Lesson 06: the steps by which threads add up many numbers, through shared memory or by shuffles,
as plain data.

``picture.js`` computes the same steps, so that the learner can change the settings; a test compares
the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_names
from course_lib.base.words import list_words

WAYS = {"shared": N_("shared memory"), "shuffle": N_("warp shuffles")}
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16)}
THREADS = (2, 4, 8, 16)
WARPS = (4, 8, 16)
MOST_VALUES = 32
DATA = {"counting": "1, 2, 3, ...", "near_ten": N_("near 10")}
_SEED = 4


@dataclass(frozen=True)
class ReductionStep:
    """One step, which all threads make at the same time.

    ``kind``: "own" (a thread adds a value that only it reads), "shared" (it adds a partner's
    number, read from shared memory), "shuffle" (it adds a partner's number, read from the partner's
    register), "meet" (each warp writes its sum to shared memory, all wait, and thread t reads that
    of warp t) or "share" (thread 0 writes the sum, all wait, all read).

    ``partners`` has for each thread the source of its number: the index of a value ("own"), of a
    warp ("meet"), else of a thread; None if the thread is idle. ``held`` has the number of each
    thread after the step.
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
        """Return the number of barriers: 1 if the step uses shared memory, since it is read only
        after every thread has written."""
        return int(self.kind in ("shared", "meet", "share"))


@dataclass(frozen=True)
class Reduction:
    """One sum with all its steps. ``loaded`` has the first number of each thread: its own first
    value, or 0."""

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
        """Return the steps that add; "meet" and "share" only pass numbers on."""
        return tuple(step for step in self.steps if step.kind not in ("meet", "share"))

    @property
    def barriers(self) -> int:
        return sum(step.barriers for step in self.steps)

    @property
    def idle(self) -> int:
        """Count the idle threads of all steps that add."""
        return sum(step.idle for step in self.additions)

    @property
    def sequential(self) -> float:
        """Return the sum of the same values, added one after another in the same dtype."""
        kind = DTYPES[self.dtype].type
        running = kind(self.values[0])
        for value in self.values[1:]:
            running = kind(running + kind(value))
        return float(running)

    @property
    def exact(self) -> float:
        return float(np.sum(np.array(self.values, dtype=np.float64)))


def model(
    values: ArrayLike, threads: int, way: str = "shared", warp: int = 32, dtype: str = "fp32"
) -> Reduction:
    """Add up ``values`` with ``threads`` threads, every addition rounded to ``dtype``.

    First thread t adds up its own values, t, t + threads, t + 2 threads, ... Then the threads
    combine their sums.

    - "shared": in each step thread t below the stride adds the number of thread t + stride, and the
      stride halves.
    - "shuffle": in each step every thread t adds the number of thread t xor stride, so that all
      threads of a warp end with its sum. Several warps write their sums to shared memory, the first
      threads add those up by shuffles, and all threads read the total from shared memory. Triton
      compiles ``tl.sum`` to this.

    Args:
        values: shape (n,), n >= 1; rounded to dtype first.
        threads, warp: powers of two; a warp has ``warp`` threads (32 on every NVIDIA GPU). There
            are at most ``warp`` warps, so that one warp can add up the sums of all.

    Raises: CourseError if an argument has another value.
    """
    values = np.asarray(values)
    if values.ndim != 1 or not values.size:
        raise CourseError(
            _(
                "the reduction tree adds up a row of at least one number; this one has shape"
                " {shape}."
            ).format(shape=values.shape)
        )
    if threads < 1 or threads & (threads - 1) or warp < 1 or warp & (warp - 1):
        words = _(
            "threads and the threads of a warp are powers of two; you asked for {threads} and"
            " {warp}."
        )
        raise CourseError(words.format(threads=threads, warp=warp))
    if way == "shuffle" and threads > warp * warp:
        words = _(
            "one warp of {warp} threads adds up the sums of at most {warp} warps; {threads} threads"
            " are {warps}."
        )
        raise CourseError(words.format(warp=warp, threads=threads, warps=threads // warp))
    if way not in WAYS or dtype not in DTYPES:
        words = _(
            "the ways are {ways} and the dtypes {dtypes}; you asked for {way!r} and {dtype!r}."
        )
        raise CourseError(
            words.format(ways=list_words(WAYS), dtypes=list_words(DTYPES), way=way, dtype=dtype)
        )
    values = values.astype(DTYPES[dtype])
    held = np.zeros(threads, dtype=DTYPES[dtype])
    first_round = values[:threads]
    held[: first_round.size] = first_round
    loaded, steps = _numbers(held), []

    for start in range(threads, values.size, threads):
        stretch = values[start : start + threads]
        held = held.copy()
        held[: stretch.size] += stretch
        steps.append(
            ReductionStep(
                "own", start, _shift_partners(stretch.size, threads, start), _numbers(held)
            )
        )
    steps += _through_shared_memory(held) if way == "shared" else _by_shuffles(held, warp)
    return Reduction(_numbers(values), threads, way, warp, dtype, loaded, tuple(steps))


def _through_shared_memory(held: np.ndarray) -> list[ReductionStep]:
    steps, stride = [], held.size // 2
    while stride:
        held = held.copy()
        held[:stride] += held[stride : 2 * stride]
        steps.append(
            ReductionStep(
                "shared", stride, _shift_partners(stride, held.size, stride), _numbers(held)
            )
        )
        stride //= 2
    return steps


def _by_shuffles(held: np.ndarray, warp: int) -> list[ReductionStep]:
    steps: list[ReductionStep] = []
    threads, warps = np.arange(held.size), held.size // warp

    def swaps(held: np.ndarray, width: int, active: int) -> np.ndarray:
        stride = width // 2
        while stride:
            held = np.where(threads < active, held + held[threads ^ stride], held)
            steps.append(
                ReductionStep(
                    "shuffle", stride, _list_partners(threads ^ stride, active), _numbers(held)
                )
            )
            stride //= 2
        return held

    held = swaps(held, min(warp, held.size), held.size)
    if warps > 1:
        held = held[threads % warps * warp]
        steps.append(ReductionStep("meet", 0, _list_partners(threads, warps), _numbers(held)))
        held = swaps(held, warps, warps)
        steps.append(
            ReductionStep("share", 0, (0,) * held.size, _numbers(np.full_like(held, held[0])))
        )
    return steps


def _list_partners(partners: np.ndarray, active: int) -> tuple[int | None, ...]:
    return tuple(
        int(partner) if thread < active else None for thread, partner in enumerate(partners)
    )


def _shift_partners(count: int, threads: int, shift: int) -> tuple[int | None, ...]:
    return tuple(t + shift if t < count else None for t in range(threads))


def _numbers(held: np.ndarray) -> tuple[float, ...]:
    return tuple(float(number) for number in held)


def values_of(kind: str, n: int) -> np.ndarray:
    """Return a row that the picture offers: 1, 2, 3, ..., or n numbers near 10 that fp16 cannot
    hold exactly."""
    if kind == "counting":
        return np.arange(1.0, n + 1)
    return 10 + np.random.Generator(np.random.PCG64(_SEED)).normal(size=n)


def make_data(n: int, threads: int, way: str, warp: int) -> dict[str, Any]:
    """Return the rows, and the settings at the start.

    Raises: CourseError if the picture does not offer an argument's value.
    """
    if not 1 <= n <= MOST_VALUES or threads not in THREADS or warp not in WARPS or way not in WAYS:
        words = _(
            "the reduction tree draws 1 to {most} values, {offered} threads, warps of {warps} and"
            " the ways {ways}; you asked for n={n}, threads={threads}, warp={warp}, way={way!r}."
        )
        offered, warps = (list_words(numbers) for numbers in (THREADS, WARPS))
        raise CourseError(
            words.format(
                most=MOST_VALUES,
                offered=offered,
                warps=warps,
                ways=list_words(WAYS),
                n=n,
                threads=threads,
                warp=warp,
                way=way,
            )
        )
    return {
        "start": {
            "n": n,
            "threads": threads,
            "way": way,
            "warp": warp,
            "row": "counting",
            "dtype": "fp32",
            "done": 0,
            "picked": None,
        },
        "rows": {kind: values_of(kind, MOST_VALUES).tolist() for kind in DATA},
        "names": translate_names(DATA),
        "ways": translate_names(WAYS),
        "threads": THREADS,
        "warps": WARPS,
        "dtypes": tuple(DTYPES),
    }
