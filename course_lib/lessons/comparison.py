"""What your kernel gave beside what it should have given, element by element, for one case of an exercise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course_lib.catalog import Exercise
from course_lib.grading.public import Judged, check_with_cases
from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

_MOST_COLUMNS = 64
_MOST_ROWS = 12
_CELLS_TOLD_APART = 40  # columns; more of them would be all lines
# right, up to ten times too far off, far off, not a number, never written: light to dark, so that grey print keeps the order
_SHADES = ("#E8F1F7", "#F9B584", "#D55E00", "#7D1145", "#1A1A1A")
_WORDS = ("right", "up to 10 x too far off", "further off", "NaN or Inf", "never written")


def states(judged: Judged, output: str) -> np.ndarray:
    """For each element of ``output``, 0 to 4: right, at most 10 x the allowed error, more, NaN or Inf, never written."""
    expected, actual = judged.plan.expected[output], judged.outputs[output]
    with np.errstate(all="ignore"):
        ratio = np.abs(actual - expected.values) / expected.allowed
    state = np.where(ratio <= 1, 0, np.where(ratio <= 10, 1, 2))
    same = (actual == expected.values) | (np.isnan(actual) & np.isnan(expected.values)) | np.isnan(expected.allowed)
    state = np.where(same, 0, np.where(np.isfinite(actual), state, 3))
    for deviation in judged.deviations:
        if deviation.output == output and deviation.kind == "unwritten":
            state = np.where(np.isnan(actual) & ~np.isnan(expected.values), 4, state)
    return state


def compare(exercise: Exercise, path: Path | None = None) -> tuple[str, Picture | None]:
    """A sentence, and the picture of the first case that fails (the first case of all, if none does).

    Without a run there is no picture, and the sentence says why.
    """
    verdict, cases = check_with_cases(exercise, path)
    ran = [case for case in cases if case.ran and case.outputs]
    if not ran:
        return f"Nothing to compare: {verdict.message}", None
    case = next((case for case in ran if not case.passed), ran[0])
    detail = next(result.detail for result in verdict.cases if result.name == case.plan.case.name)
    return f"{exercise.id} {verdict.status}. Case {case.plan.case.name}: {detail}.", draw(case)


def draw(judged: Judged) -> Picture:
    """The outputs of one case as grids of cells, coloured by how far each element is off."""
    outputs = list(judged.plan.expected)
    shown = {name: np.atleast_2d(states(judged, name))[:_MOST_ROWS, :_MOST_COLUMNS] for name in outputs}
    heights = [max(0.35, min(2.4, 0.22 * grid.shape[0])) for grid in shown.values()]
    figure = Figure(figsize=(style.WIDTH, 1.1 + sum(heights) + 0.55 * len(outputs)), layout="constrained")
    panels = figure.subplots(len(outputs), 1, height_ratios=heights, squeeze=False)[:, 0]
    shades, norm = ListedColormap(_SHADES), BoundaryNorm(np.arange(-0.5, 5), 5)
    for axes, (name, grid) in zip(panels, shown.items(), strict=True):
        axes.imshow(grid, cmap=shades, norm=norm, aspect="auto", interpolation="nearest")
        axes.set_title(_title(judged, name), fontsize=style.FONT + 1)
        axes.grid(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if grid.shape[1] <= _CELLS_TOLD_APART:
            axes.vlines(np.arange(0.5, grid.shape[1] - 1), -0.5, grid.shape[0] - 0.5, color=style.GRID, linewidth=0.6)
        axes.hlines(np.arange(0.5, grid.shape[0] - 1), -0.5, grid.shape[1] - 0.5, color=style.GRID, linewidth=0.6)
        axes.set_yticks(range(grid.shape[0]) if judged.plan.expected[name].values.ndim == 2 else [])
        if judged.plan.expected[name].values.ndim == 2:
            axes.set_ylabel("row")
    panels[-1].set_xlabel("column, or row for a statistic" if len(outputs) > 1 else "element")
    used = sorted({int(value) for grid in shown.values() for value in np.unique(grid)})
    keys = [
        panels[0].plot(
            [], [], "s", color=_SHADES[value], markeredgecolor=style.INK, markersize=10, label=_WORDS[value]
        )[0]
        for value in used
    ]
    figure.legend(handles=keys, loc="outside lower left", ncols=len(keys), frameon=False)
    return picture(figure, _alt(judged))


def _title(judged: Judged, name: str) -> str:
    wrong = int(np.sum(states(judged, name) > 0))
    size = judged.plan.expected[name].values.size
    cut = judged.plan.expected[name].values.shape[-1] > _MOST_COLUMNS
    return f"{name}: {'all right' if not wrong else f'{wrong} of {size} elements wrong'}{f' (first {_MOST_COLUMNS} shown)' if cut else ''}"


def _alt(judged: Judged) -> str:
    return f"Your outputs against the specification, case {judged.plan.case.name}: " + "; ".join(
        _title(judged, name) for name in judged.plan.expected
    )
