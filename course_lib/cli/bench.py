"""What ``course bench`` does: measure or recall, print a table, draw a picture."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import course_lib
from course_lib import paths
from course_lib.bench import measurement
from course_lib.errors import CourseError
from course_lib.files import write_atomic

KINDS = {
    "forward": "forward passes of LayerNorm and RMSNorm, with and without the residual added first, against the floor",
    "backward": "their backward passes alone",
    "long_rows": "rows of 65536 columns and more, forward and backward",
    "statistics": "mean and variance alone, by lesson 05's algorithms",
    "host": "what an eager call costs the host",
    "training": "a transformer's training steps",
    "counters": "the hardware's counters of the course's kernels, by Nsight Compute",
}
_DRAWN = tuple(name for name in KINDS if name != "counters")  # a table of reasons, not of quantities to compare
_SELECTS = {  # which of the options a kind has
    "forward": ("columns", "dtype", "providers"),
    "backward": ("columns", "dtype", "providers"),
    "long_rows": ("columns", "dtype", "providers"),
    "host": ("dtype", "providers"),
    "counters": ("dtype",),
}


def run(
    kind: str,
    *,
    stored: bool = False,
    plot: Path | None = None,
    columns: str | None = None,
    dtype: str | None = None,
    providers: str | None = None,
) -> Iterator[str]:
    """The lines to print, as they become known.

    Args:
        kind: one of KINDS, or "all".
        stored: recall the newest stored measurement and measure nothing.
        plot: a PNG file to draw into; for "all" the kind is added to its name.
        columns: row lengths, with commas between; None is the whole grid.
        dtype: "fp16", "bf16" or "fp32"; None is fp16.
        providers: names with commas between; None is all of them.

    Raises: CourseError if there is no such kind, dtype or provider, no GPU to measure on, or nothing stored.
    """
    if kind not in (*KINDS, "all"):
        raise CourseError(f"there is no measurement {kind!r}. There are: {', '.join(KINDS)}, all.")
    asked = {"columns": columns and _numbers(columns), "dtype": dtype, "providers": providers and _names(providers)}
    asked = {name: value for name, value in asked.items() if value}
    for name in asked:
        if kind != "all" and name not in _SELECTS.get(kind, ()):
            raise CourseError(
                f"`course bench {kind}` has no --{name}. These have: {', '.join(k for k in _SELECTS if name in _SELECTS[k])}."
            )
    if plot is not None and kind not in (*_DRAWN, "all"):
        raise CourseError(f"`course bench {kind}` prints a table and has no picture; leave --plot out.")
    _ = course_lib.MODE  # chooses GPU or interpreter now: the measuring modules import PyTorch, and that can import Triton
    for name in KINDS if kind == "all" else (kind,):
        module = importlib.import_module(f"course_lib.bench.{name}")
        selection = {option: value for option, value in asked.items() if option in _SELECTS.get(name, ())}
        if stored and kind == "all" and not measurement.is_stored(name):
            yield f"{name}: not measured yet. `course bench {name}` on a GPU takes it."
            continue
        try:
            taken = _recalled(name, **selection) if stored else module.measure(**selection)
        except measurement.Unavailable as error:
            if kind != "all":
                raise
            yield f"{name}: {error}"
            continue
        if not stored:
            yield f"saved to {paths.shown(taken.save())}"
        yield module.table(taken)
        if plot is not None and name in _DRAWN:
            yield f"drawn into {_draw(name, taken, plot if kind != 'all' else plot.with_stem(f'{plot.stem}-{name}'))}"


def _recalled(
    kind: str, columns: tuple[int, ...] | None = None, dtype: str = "fp16", providers: tuple[str, ...] | None = None
) -> measurement.Measurement:
    from course_lib.bench.grid import of_dtype

    return measurement.stored(of_dtype(kind, dtype)).only(columns, providers)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        columns = tuple(int(part) for part in text.split(","))
    except ValueError:
        columns = ()
    if not columns or min(columns) < 1:
        raise CourseError(f"--columns {text} is not a list of row lengths; 256,1024,4095 is one.")
    return columns


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _draw(kind: str, taken: measurement.Measurement, target: Path) -> Path:
    from course_lib.figures import bench as figures
    from course_lib.widgets import style

    if not taken.rows:
        raise CourseError(f"there is nothing to draw: this selection of the measurement {taken.kind!r} has no times.")
    style.use()
    drawing, message = {
        "host": (figures.host, "Host time of an eager call"),
        "training": (figures.training, "Time of a training step"),
    }.get(kind, (figures.over_floor, "Time over floor of each provider by row length"))
    write_atomic(target, style.png(drawing(taken), f"{message}, {taken.kind}, {taken.label()}."))
    return target
