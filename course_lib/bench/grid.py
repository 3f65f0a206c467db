"""Time providers over a grid of shapes: measure the floor, check the values, measure device times.
Failures are kept with their reasons.

A kind of measurement (forward.py, backward.py, long_rows.py) is a :class:`Grid` with its shapes,
operations and providers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import measurement, operations, timing
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import DTYPES, OPERATIONS, NormOperation, Values, WrongValues
from course_lib.bench.providers import Prepare, Provider, choose_providers, find_versions

TOUCHED = 400 << 20  # bytes that one graph reads and writes, eight times an H100's L2 cache
MOST_INPUTS = 200
_COLOUR = re.compile("\x1b\\[[0-9;]*m")  # terminal colours in the messages of some libraries
METHOD = (
    "device time, CUDA graph over inputs of 400 MB or more, outputs kept, median of 12 replays, the"
    " better of two, in both orders of the providers; values checked against float64 first; floor:"
    " the fastest elementwise pass over as many bytes, several tried before and after"
)


@dataclass(frozen=True)
class Shape:
    """M x N. ``tag`` is added to the operations' names, to distinguish several M at one row
    length."""

    M: int
    N: int
    tag: str = ""


@dataclass(frozen=True)
class Sweep:
    """Operations at row lengths of a grid, with ``rows`` rows, or with as many as give M x N =
    ``elements``.

    ``columns`` limits the grid's row lengths; None takes all of them. ``tag`` is that of the
    shapes.
    """

    operations: tuple[str, ...]
    elements: int = 0
    rows: int = 0
    columns: tuple[int, ...] | None = None
    tag: str = ""

    def shapes(self, columns: Iterable[int]) -> Iterator[Shape]:
        """Yield the sweep's shapes for the given row lengths."""
        for N in columns:
            if self.columns is None or N in self.columns:
                yield Shape(self.rows or max(1, self.elements // N), N, self.tag)


@dataclass(frozen=True)
class Grid:
    """A kind of measurement. Lessons show only ``lesson_columns`` and ``lesson_providers``: their
    own designs, and PyTorch."""

    kind: str
    columns: tuple[int, ...]
    providers: tuple[str, ...]
    sweeps: tuple[Sweep, ...]
    lesson_columns: tuple[int, ...] = ()
    lesson_providers: tuple[str, ...] = ()

    def measure(
        self,
        columns: Iterable[int] | None = None,
        dtype: str = "fp16",
        providers: Iterable[str] | None = None,
    ) -> Measurement:
        """Time every provider at every shape.

        Args:
            columns: the row lengths; None takes all of the grid.
            dtype: "fp16", "bf16" or "fp32".
            providers: names of the grid's providers; None takes all of them.

        Raises: CourseError without a GPU, for an unknown dtype or provider.
        """
        columns = self.columns if columns is None else tuple(columns)
        result, timed = begin(
            self.kind, dtype, providers, self.providers, whole=set(columns) >= set(self.columns)
        )
        for sweep in self.sweeps:
            for shape in sweep.shapes(columns):
                measure_shape(
                    result,
                    tuple(OPERATIONS[name] for name in sweep.operations),
                    shape,
                    dtype,
                    timed,
                )
        return result

    def latest(self, columns: tuple[int, ...] | None = None) -> Measurement:
        """Return the part that lessons show, measured now if there is a GPU, else from the newest
        stored measurement.

        Args:
            columns: the row lengths; None takes ``lesson_columns``.

        Raises: CourseError if nothing is stored.
        """
        columns = self.lesson_columns if columns is None else columns
        if course_lib.MODE == "gpu":
            return self.measure(columns, providers=self.lesson_providers)
        return measurement.stored(self.kind).only(columns, self.lesson_providers)


def begin(
    kind: str,
    dtype: str,
    names: Iterable[str] | None,
    among: Sequence[str],
    *,
    whole: bool,
    method: str = METHOD,
) -> tuple[Measurement, list[Provider]]:
    """Return an empty measurement, and the providers to time.

    Args:
        names: names of providers; None takes all of ``among``.
        whole: whether all shapes will be measured. A part of the shapes or providers is stored
            under another kind, and so is a dtype other than fp16.

    Raises: CourseError without a GPU, for an unknown dtype or provider.
    """
    if dtype not in DTYPES:
        raise CourseError(
            f"there is no dtype {dtype!r} to measure. There are: {', '.join(DTYPES)}."
        )
    providers = choose_providers(names, among)
    whole = whole and {p.name for p in providers} == set(among)
    versions = find_versions(providers)
    result = measurement.new(
        f"{of_dtype(kind, dtype)}{'' if whole else measurement.PART}", method, versions
    )
    for provider in providers:
        if not provider.installed():
            result.untimed.append(
                {"provider": provider.name, "state": "absent", "note": "not installed"}
            )
    return result, [provider for provider in providers if provider.installed()]


def of_dtype(kind: str, dtype: str) -> str:
    """Return the kind under which a measurement of ``dtype`` is stored."""
    return kind if dtype == "fp16" else f"{kind}_{dtype}"


def count_inputs(M: int, N: int, itemsize: int) -> int:
    """Return how many inputs of M x N elements of ``itemsize`` bytes, with their outputs, are
    larger than the L2 cache."""
    return min(MOST_INPUTS, max(2, TOUCHED // (2 * M * N * itemsize)))


def measure_shape(
    result: Measurement,
    ops: Sequence[NormOperation],
    shape: Shape,
    dtype: str,
    providers: Sequence[Provider],
) -> None:
    """Time ``ops`` of one shape with every provider, and add the times to ``result``.

    If one provider fails, the error is recorded and the others are still timed.

    Raises: the device's exception, if the device is no longer usable.
    """
    _show_progress(f"{result.kind} {shape.M} x {shape.N} {dtype}")
    itemsize = DTYPES[dtype].itemsize
    count = count_inputs(shape.M, shape.N, itemsize)
    inputs = operations.make(shape.M, shape.N, DTYPES[dtype], course_lib.DEVICE, count, ops)
    before = {op.name: operations.floor_us(op, inputs) for op in ops}
    times, prepared = _time_once(result, ops, shape, dtype, providers, inputs)
    # Time everything again in reverse order: on an H200 the first provider after new inputs takes
    # up to 3 % longer.
    for provider in reversed(providers):
        for op in ops:
            if (op.name, provider.name) in times:
                calls = [prepared[provider.name][op.name](v) for v in inputs]
                times[op.name, provider.name] = min(
                    times[op.name, provider.name], timing.device_us(calls)
                )
    for op in ops:
        floor = min(before[op.name], operations.floor_us(op, inputs))
        for provider in providers:
            if (op.name, provider.name) in times:
                result.rows.append(
                    measurement.row(
                        op=op.name + shape.tag,
                        provider=provider.name,
                        M=shape.M,
                        N=shape.N,
                        dtype=dtype,
                        us=times[op.name, provider.name],
                        moved=op.matrices * shape.M * shape.N * itemsize,
                        floor=floor,
                    )
                )
    _show_progress("")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # other graphs cannot use a graph's memory pool


def _time_once(
    result: Measurement,
    ops: Sequence[NormOperation],
    shape: Shape,
    dtype: str,
    providers: Sequence[Provider],
    inputs: Sequence[Values],
) -> tuple[dict[tuple[str, str], float], dict[str, dict[str, Prepare]]]:
    """Check and time every operation of every provider. Return the times by operation and provider,
    and what prepares each provider's calls; what fails is recorded in ``result``."""
    times: dict[tuple[str, str], float] = {}
    prepared: dict[str, dict[str, Prepare]] = {}
    for provider in providers:
        try:
            prepare = prepared[provider.name] = provider.load().prepare
        except Exception as error:
            record(result, provider, error, {"dtype": dtype})
            continue
        for op in ops:
            if op.name not in prepare:
                continue
            _show_progress(
                f"{result.kind} {shape.M} x {shape.N} {dtype}: {provider.name} {op.name}"
            )
            try:
                times[op.name, provider.name] = _check_and_time(
                    op, [prepare[op.name](v) for v in inputs], inputs[0]
                )
            except Exception as error:
                record(
                    result,
                    provider,
                    error,
                    {"op": op.name + shape.tag, "M": shape.M, "N": shape.N, "dtype": dtype},
                )
    return times, prepared


def _check_and_time(op: NormOperation, calls: list, first_values: Values) -> float:
    operations.check(op, calls[0](), first_values)
    return timing.device_us(calls)


def record(result: Measurement, provider: Provider, error: Exception, names: dict) -> None:
    """Record why ``provider`` has no time for the case in ``names``.

    Raises: the device's exception, if the error left the device unusable.
    """
    state = "wrong" if isinstance(error, WrongValues) else provider.state(error)
    note = str(error) if state in ("wrong", "refused") else f"{type(error).__name__}: {error}"
    note = _COLOUR.sub("", note).strip()
    result.untimed.append(
        {**names, "provider": provider.name, "state": state, "note": note.split("\n\n")[0][:500]}
    )
    if torch.cuda.is_available():
        try:
            torch.cuda.synchronize()
        except RuntimeError as dead:
            dead.add_note(
                f"{provider.name} left the device unusable with {note!r}. Measure the others with"
                " --providers."
            )
            raise dead from error


def _show_progress(line: str) -> None:
    """Show the progress on standard error if that is a terminal, because a grid takes minutes."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
