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

KINDS = ("forward", "backward", "long_rows", "statistics")


def run(kind: str, *, stored: bool = False, plot: Path | None = None) -> Iterator[str]:
    """The lines to print, as they become known.

    Args:
        kind: one of KINDS, or "all".
        stored: recall the newest stored measurement and measure nothing.
        plot: a PNG file to draw into; for "all" the kind is added to its name.

    Raises: CourseError if there is no such kind, no GPU to measure on, or nothing stored.
    """
    if kind not in (*KINDS, "all"):
        raise CourseError(f"there is no measurement {kind!r}. There are: {', '.join(KINDS)}, all.")
    _ = course_lib.MODE  # chooses GPU or interpreter now: the measuring modules import PyTorch, and that can import Triton
    for name in KINDS if kind == "all" else (kind,):
        module = importlib.import_module(f"course_lib.bench.{name}")
        taken = measurement.stored(name) if stored else module.measure()
        if not stored:
            yield f"saved to {paths.shown(taken.save())}"
        yield module.table(taken)
        if plot is not None:
            yield f"drawn into {_draw(taken, plot if kind != 'all' else plot.with_stem(f'{plot.stem}-{name}'))}"


def _draw(taken: measurement.Measurement, target: Path) -> Path:
    from course_lib.figures.bench import over_floor
    from course_lib.widgets import style

    style.use()
    write_atomic(target, style.png(over_floor(taken), f"Time over floor of each provider by row length, {taken.kind}, {taken.label()}."))
    return target
