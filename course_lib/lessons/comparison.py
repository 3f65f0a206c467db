"""What your kernel gave beside what it should have given, number by number, for the case that the verdict shows."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np

from course_lib.catalog import Exercise
from course_lib.grading.public import SIGNS, Judged, check_with_cases, make_report
from course_lib.lessons.panel_page import write_inline, write_quotation
from course_lib.lessons.words import format_number

_ROWS, _COLUMNS = 6, 8  # of an output that is shown: as much as stands beside one another on a narrow page
# an element's state by number: its class in panel.css, and what that means
_STATES = (
    ("", "right"),
    ("course-near", "off, at most 10 x the allowed error"),
    ("course-far", "further off"),
    ("course-nan", "NaN or Inf"),
    ("course-unwritten", "never written"),
)


def compute_states(judged: Judged, output: str) -> np.ndarray:
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


def compare(exercise: Exercise, path: Path | None = None) -> str:
    """HTML for the panel: a sentence, and the outputs of the case that the verdict shows (the first case of all, if none fails).

    Without a run there is nothing but the sentence, which says why.
    """
    verdict, cases = check_with_cases(exercise, path)
    if exercise.kind == "tests":  # what a test returns is no tensor
        return f"<p>{write_inline(verdict.message)}</p>{write_quotation(make_report(verdict, exercise))}"
    ran = [case for case in cases if case.ran and case.outputs]
    if not ran:
        return f"<p>Nothing to compare: {write_inline(verdict.message)}</p>"
    if ran[0].plan.derive is not None:  # many numbers are right: what follows from yours, case by case
        rows = "".join(f"<li>{SIGNS.get(c.status, '–')} {write_inline(c.detail)}</li>" for c in verdict.cases)
        return f"<p>{write_inline(verdict.message)}</p><ul>{rows}</ul>"
    # the case that the verdict speaks of
    named = verdict.first.case if verdict.first else ""
    case = min(ran, key=lambda case: (case.plan.case.describe() != named, case.passed))
    sentence = f"{exercise.id} {verdict.status}. The case shown: {case.plan.case.describe()}."
    return f"<p>{html.escape(sentence)}</p>{write_outputs(case)}{write_quotation(make_report(verdict, exercise))}"


def write_outputs(judged: Judged) -> str:
    """Every output of a case: what is wrong in it, and yours, expected and their difference around the first wrong element."""
    states = {name: compute_states(judged, name) for name in judged.plan.expected}
    parts = []
    for name, state in sorted(states.items(), key=lambda item: not item[1].any()):
        parts.append(f"<p><b>{html.escape(name)}</b>: {_count(state)}</p>")
        if state.any() or not any(other.any() for other in states.values()):
            parts.append(_write_grids(judged, name, state))
    used = sorted({int(value) for state in states.values() for value in np.unique(state)} - {0})
    keys = "".join(f'<span class="course-key {_STATES[value][0]}">{_STATES[value][1]}</span>' for value in used)
    return "".join(parts) + (f"<p>{keys}</p>" if keys else "")


def _count(state: np.ndarray) -> str:
    wrong = state > 0
    if not wrong.any():
        return f"all right, {state.size} elements"
    told = f"{int(wrong.sum())} of {state.size} elements wrong"
    if state.ndim != 2:
        return told
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    return f"{told}, in {_list_places('row', rows, len(state))} and {_list_places('column', columns, state.shape[1])}"


def _list_places(noun: str, places: np.ndarray, size: int) -> str:
    if len(places) == size:
        return f"every {noun}"
    if len(places) == 1:
        return f"{noun} {places[0]}"
    if len(places) == places[-1] - places[0] + 1:
        return f"{noun}s {places[0]} to {places[-1]}"
    return f"{len(places)} {noun}s from {places[0]} to {places[-1]}"


def _write_grids(judged: Judged, name: str, state: np.ndarray) -> str:
    expected, actual = judged.plan.expected[name].values, judged.outputs[name]
    grid = np.atleast_2d(state)
    first = np.argwhere(grid > 0)[0] if grid.any() else np.zeros(2, int)
    # one right neighbour before the first wrong element, where there is one: the edge between them often says it all
    top, left = (
        max(0, min(at - 1, size - most)) for at, size, most in zip(first, grid.shape, (_ROWS, _COLUMNS), strict=True)
    )
    window = np.s_[top : top + _ROWS, left : left + _COLUMNS]
    with np.errstate(all="ignore"):
        difference = actual - expected
    sides = {"yours": actual, "expected": expected, "difference": difference}
    cells = {side: np.atleast_2d(values)[window] for side, values in sides.items()}
    looks = {side: grid[window] * (side != "expected") for side in sides}
    if state.ndim == 2:
        rows = [str(top + row) for row in range(len(grid[window]))]
        tables = "".join(_write_grid(side, left, rows, cells[side], looks[side]) for side in sides)
    else:  # one row each: one below the other
        tables = _write_grid("", left, list(sides), *(np.concatenate(list(part.values())) for part in (cells, looks)))
    cut = any(size > most for size, most in zip(grid.shape, (_ROWS, _COLUMNS), strict=True))
    shown = f"<small>Shown: {name}[{_span(top, grid.shape[0], _ROWS) + ', ' if state.ndim == 2 else ''}{_span(left, grid.shape[1], _COLUMNS)}].</small>"
    return f'<div class="course-grids">{tables}</div>{shown if cut else ""}'


def _span(start: int, size: int, most: int) -> str:
    return f"{start}:{min(start + most, size)}"


def _write_grid(title: str, left: int, rows: list[str], values: np.ndarray, states: np.ndarray) -> str:
    head = "".join(f'<th scope="col">{left + column}</th>' for column in range(values.shape[1]))
    body = ""
    for row, line, state in zip(rows, values, states, strict=True):
        cells = "".join(_write_cell(value, *_STATES[int(s)]) for value, s in zip(line, state, strict=True))
        body += f'<tr><th scope="row">{row}</th>{cells}</tr>'
    caption = f"<caption>{title}</caption>" if title else ""
    return f'<table class="course-grid">{caption}<tr><th></th>{head}</tr>{body}</table>'


def _write_cell(value: float, look: str, meaning: str) -> str:
    number = "none" if look == _STATES[4][0] else html.escape(format_number(float(value), 4))
    return f'<td class="{look}" title="{meaning}">{number}</td>' if look else f"<td>{number}</td>"
