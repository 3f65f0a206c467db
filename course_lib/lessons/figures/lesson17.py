"""The figures of lesson 17: the bugs that each input shows, and the kernels that the tests of exercise 17a caught."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.museum import Met

SHOWS = 0.01  # a larger error shows a bug: no test has a tolerance as wide as this


def draw_errors(table: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw a grid with a row per bug and a column per input; a cell has the largest error of y.

    Args:
        table: for each bug and each input, both in words, the largest error of y.
    """
    bugs, inputs = list(table), list(next(iter(table.values())))
    left, top, wide, high = 1.15, 1.25, (style.WIDTH - 1.3) / len(inputs), 0.42
    figure, axes = style.drawing(style.WIDTH, top + high * len(bugs) + 0.2)
    blind = [name for name in inputs if not any(_shows(row[name]) for row in table.values())]
    title = f"Input {blind[0].partition(':')[0]} shows no bug, and no input shows all" if blind else "No input shows every bug"
    style.write(axes, 0.15, 0.28, title, font=12, bold=True)
    for column, name in enumerate(inputs):
        letter, _, rest = name.partition(": ")
        style.write(axes, left + wide * (column + 0.5), top - 0.5, letter, ha="center", bold=True)
        style.write(axes, left + wide * (column + 0.5), top - 0.22, rest, ha="center")
    for line, bug in enumerate(bugs):
        y = top + high * line
        style.write(axes, left - 0.12, y + high / 2, bug, ha="right")
        for column, name in enumerate(inputs):
            error = table[bug][name]
            state = "done" if _shows(error) else "waiting"
            style.cell(axes, (left + wide * column, y), (wide - 0.06, high - 0.06), _say(error), state)
    return figure


def describe_errors(table: Mapping[str, Mapping[str, float]]) -> str:
    """Write the alt text of :func:`draw_errors`."""
    told = " ".join(
        f"{bug}: shown by {', '.join(name.partition(':')[0] for name, error in row.items() if _shows(error)) or 'none'}."
        for bug, row in table.items()
    )
    return f"A grid of {len(table)} bugs and {len(next(iter(table.values())))} inputs, with how far y is off. {told}"


def draw_met(met: Mapping[str, Sequence[Met]]) -> Figure:
    """Draw a row per test and a box per kernel, first the wrong kernels, then the right ones. A box shows whether the test raised."""
    left, top, wide, high = 2.15, 1.0, 0.34, 0.42
    most = max(sum(not one.is_right for one in kernels) for kernels in met.values())
    figure, axes = style.drawing(style.WIDTH, top + high * len(met) + 0.55)
    full = sum(all(one.caught is not None and one.caught != one.is_right for one in kernels) for kernels in met.values())
    style.write(axes, 0.15, 0.28, f"{full} of {len(met)} bugs caught", font=12, bold=True)
    of_right = left + wide * most + 0.3
    style.write(axes, left, top - 0.2, "wrong kernels", bold=True)
    style.write(axes, of_right, top - 0.2, "right kernels", bold=True)
    for line, (test, kernels) in enumerate(met.items()):
        y = top + high * line
        style.write(axes, left - 0.12, y + high / 2, test.removeprefix("catch_").replace("_", " "), ha="right")
        for is_right, start in ((False, left), (True, of_right)):
            for number, one in enumerate(one for one in kernels if one.is_right == is_right):
                state = "waiting" if one.caught is None else "fault" if one.caught == is_right else "done"
                sign = "" if one.caught is None else "✓" if one.caught != is_right else "✗"
                style.cell(axes, (start + wide * number, y), (wide - 0.06, high - 0.06), sign, state)
    words = "✓: a wrong kernel found, a right one left alone.   ✗: a wrong one missed, a right one accused."
    style.write(axes, 0.15, top + high * len(met) + 0.25, words)
    return figure


def describe_met(met: Mapping[str, Sequence[Met]]) -> str:
    """Write the alt text of :func:`draw_met`."""
    if all(one.caught is None for kernels in met.values() for one in kernels):
        return f"A grid of {len(met)} tests and the kernels that they will meet, wrong ones and right ones. None has run yet."
    told = []
    for test, kernels in met.items():
        wrong, right = ([one.caught for one in kernels if one.is_right == is_right] for is_right in (False, True))
        told.append(
            f"{test}: {wrong.count(True)} of {len(wrong)} wrong kernels caught, {right.count(True)} of {len(right)} right ones accused."
        )
    return f"A grid of {len(met)} tests and the kernels that they met. {' '.join(told)}"


def _shows(error: float) -> bool:
    return not error <= SHOWS  # true for NaN as well


def _say(error: float) -> str:
    if math.isnan(error):
        return "NaN"
    return f"{error:.0e}" if error < 1e-3 else f"off by {float(f'{error:.1g}'):,g}"
