"""Lesson 04: many numbers become one sum. Which thread adds which partner's, through shared memory or by shuffles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
from matplotlib.axes import Axes

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveStepper, Picture, wide
from course_lib.lessons.reduction_tree.model import (
    COUNTS,
    DATA,
    DTYPES,
    THREADS,
    WARPS,
    WAYS,
    Reduction,
    ReductionStep,
    describe,
    model,
    title,
    values_of,
)
from course_lib.lessons.words import format_number

_MOST_SHOWN = 32
_LEFT, _TOP, _CELL, _LINE = 1.62, 0.72, 0.3, 0.62


def draw(made: Reduction, done: int) -> Picture:
    """The values, then a line of threads after each kind of step, with a line from every partner."""
    width = (style.WIDTH - _LEFT - 0.15) / made.threads
    digits = 4 if made.threads <= 8 else 3
    n, own = len(made.values), [step for step in made.steps if step.kind == "own"]
    tree = made.steps[len(own) :]
    value_lines = -(-n // made.threads)
    tree_top = _TOP + value_lines * (_CELL + 0.04) + 0.34
    height = tree_top + (1 + len(tree)) * _LINE + 0.1
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(made, done), font=12, bold=True)

    def left(thread: int) -> float:
        return _LEFT + thread * width

    for thread in range(made.threads):
        style.write(
            axes,
            left(thread) + width / 2,
            0.56,
            f"t {thread}" if made.threads <= 8 else str(thread),
            ha="center",
            colour=style.QUIET,
        )
    style.write(axes, _LEFT - 0.12, 0.56, "thread", ha="right", colour=style.QUIET)
    for line in range(value_lines):
        top = _TOP + line * (_CELL + 0.04)
        if line == 0:
            style.write(axes, _LEFT - 0.12, top + _CELL / 2, "values", ha="right")
        for thread, value in enumerate(made.values[line * made.threads : (line + 1) * made.threads]):
            used, now = line <= min(done, len(own)), line == done and 0 < done <= len(own)
            kind = "active" if now else "done" if used else "waiting"
            style.cell(axes, (left(thread), top), (width - 0.05, _CELL), format_number(value, digits), kind, heavy=now)

    # what each thread holds once it has added its own values
    sums = made.steps[min(done, len(own)) - 1].held if own and done else made.loaded
    partners = made.steps[done - 1].partners if 0 < done <= len(own) else (0,) * made.threads
    _line_of_threads(axes, left, width, tree_top, "threads hold", sums, partners, digits, current=done <= len(own))
    for number, step in enumerate(tree, 1):
        at = tree_top + number * _LINE
        shown = done >= len(own) + number
        label = {"shared": f"stride {step.stride}", "shuffle": f"xor {step.stride}"}.get(step.kind, "shared memory")
        _line_of_threads(
            axes,
            left,
            width,
            at,
            label,
            step.held if shown else None,
            step.partners,
            digits,
            current=done == len(own) + number,
        )
        if shown:
            _draw_partners(axes, left, width, at, step, made.warp, current=done == len(own) + number)
    caption = describe(made, done)
    alt = f"{title(made, done)}. Boxes for the values, below them a line of boxes for the threads after each step. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _line_of_threads(axes: Axes, left, width, top, label, held, partners, digits, current) -> None:
    style.write(
        axes, _LEFT - 0.12, top + _CELL / 2, label, ha="right", bold=current, colour=None if current else style.QUIET
    )
    for thread, partner in enumerate(partners):
        if held is None:
            kind, text = "waiting", ""
        elif partner is None:
            kind, text = "masked", ""
        else:
            kind, text = "active" if current else "done", format_number(held[thread], digits)
        style.cell(axes, (left(thread), top), (width - 0.05, _CELL), text, kind, heavy=current and kind == "active")


def _draw_partners(axes: Axes, left, width, top, step: ReductionStep, warp: int, current: bool) -> None:
    look = {
        "color": style.INK if current else style.QUIET,
        "linewidth": 1.4 if current else 0.7,
        "marker": "",
        "zorder": 1,
    }
    for thread, partner in enumerate(step.partners):
        if partner is None:
            continue
        source = partner * warp if step.kind == "meet" else partner
        middle = left(thread) + (width - 0.05) / 2
        start = left(source) + (width - 0.05) / 2
        handed = step.kind in ("meet", "share")
        axes.plot([start, middle], [top - _LINE + _CELL, top], linestyle="--" if handed else "-", **look)
        if not handed:
            axes.plot([middle, middle], [top - _LINE + _CELL, top], linestyle=":", **look)


def reduction_tree(n: int = 16, threads: int = 8, way: str = "shared", warp: int = 4) -> LiveStepper:
    """Step through a reduction: Back, ReductionStep, Play, and a slider for the steps.

    Args:
        n: how many values, 1 to 32.
        threads: 2, 4, 8 or 16.
        way: "shared" (memory) or "shuffle".
        warp: threads of a warp, 4, 8 or 16; a real warp has 32, too many to draw.

    Raises: CourseError if an argument is none of those.
    """
    if not 1 <= n <= _MOST_SHOWN or threads not in THREADS or warp not in WARPS or way not in WAYS:
        raise CourseError(
            f"the reduction tree draws 1 to {_MOST_SHOWN} values, {', '.join(map(str, THREADS))} threads, warps of "
            f"{', '.join(map(str, WARPS))} and the ways {', '.join(WAYS)}; "
            f"you asked for n={n}, threads={threads}, warp={warp}, way={way!r}."
        )
    controls = {
        "n": ipywidgets.SelectionSlider(options=sorted({*COUNTS, n}), value=n, description="values", layout=wide(220)),
        "threads": ipywidgets.SelectionSlider(
            options=list(THREADS), value=threads, description="threads", layout=wide(220)
        ),
        "way": ipywidgets.Dropdown(
            options=[(label, key) for key, label in WAYS.items()], value=way, description="by", layout=wide(190)
        ),
        "warp": ipywidgets.SelectionSlider(
            options=list(WARPS), value=warp, description="threads a warp", layout=wide(240)
        ),
        "data": ipywidgets.Dropdown(
            options=[(label, key) for key, label in DATA.items()], description="row", layout=wide(160)
        ),
        "dtype": ipywidgets.Dropdown(options=list(DTYPES), description="dtype", layout=wide(130)),
    }

    def arrange(controls: Mapping[str, Any]) -> None:
        controls["warp"].disabled = controls["way"].value != "shuffle"

    def frames(n: int, threads: int, way: str, warp: int, data: str, dtype: str) -> Sequence[tuple[Reduction, int]]:
        made = model(values_of(data, n), threads, way, warp, dtype)
        return [(made, done) for done in range(len(made.steps) + 1)]

    def draw_frame(frames: Sequence[tuple[Reduction, int]], index: int) -> Picture:
        return draw(*frames[index])

    return LiveStepper(frames, draw_frame, controls, arrange=arrange, still=lambda frames: len(frames) - 1)
