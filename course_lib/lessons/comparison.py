"""The learner's outputs beside the expected ones, number by number, for the case that the verdict shows."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np

from course_lib.base.words import format_number
from course_lib.catalog import Exercise
from course_lib.grading.public import SIGNS, Element, Judged, check_with_cases, make_report
from course_lib.lessons.panel_page import write_inline, write_quotation

_ROWS, _COLUMNS = 6, 8  # the part of an output that is shown, small enough for a narrow page
_NEAR = len(Element)  # the look of an element that is off by little; the key of every other look is an Element
_NEAR_RATIO = 10  # largest error, in allowed errors, that counts as off by little
# an element's look: its class in panel.css, and the meaning of the class in words
_LOOKS = {
    Element.RIGHT: ("", "right"),
    Element.UNWRITTEN: ("course-unwritten", "never written"),
    Element.WRONG_KIND: ("course-nan", "NaN or Inf, or a number where one of them belongs"),
    Element.OFF: ("course-far", f"off by more than {_NEAR_RATIO} x the allowed error"),
    Element.WRONG_ZERO: ("course-zero", "-0 where 0 belongs, or 0 where -0 belongs"),
    _NEAR: ("course-near", f"off by at most {_NEAR_RATIO} x the allowed error"),
}


def choose_looks(judged: Judged, output: str) -> np.ndarray:
    """Return for each element of ``output`` the key of its look."""
    elements = judged.elements[output]
    is_near = (elements.kinds == Element.OFF) & (elements.ratio <= _NEAR_RATIO)
    return np.where(is_near, _NEAR, elements.kinds)


def compare(exercise: Exercise, path: Path | None = None) -> str:
    """Return HTML for the panel: a sentence, and the outputs of the case that the verdict shows (the first case if none fails).

    If no case ran, return only a sentence that says why.
    """
    verdict, cases = check_with_cases(exercise, path)
    if exercise.kind == "tests":  # tests have no tensors to compare
        return f"<p>{write_inline(verdict.message)}</p>{write_quotation(make_report(verdict, exercise))}"
    ran = [case for case in cases if case.ran and case.outputs]
    if not ran:
        return f"<p>Nothing to compare: {write_inline(verdict.message)}</p>"
    # more than one answer is right: show what follows from the learner's, case by case
    if ran[0].plan.derive is not None:
        rows = "".join(f"<li>{SIGNS.get(c.status, '–')} {write_inline(c.detail)}</li>" for c in verdict.cases)
        return f"<p>{write_inline(verdict.message)}</p><ul>{rows}</ul>"
    # choose the case that the verdict names
    named = verdict.first.case if verdict.first else ""
    case = min(ran, key=lambda case: (case.plan.case.describe() != named, case.passed))
    sentence = f"{exercise.id} {verdict.status}. The case shown: {case.plan.case.describe()}."
    return f"<p>{html.escape(sentence)}</p>{write_outputs(case)}{write_quotation(make_report(verdict, exercise))}"


def write_outputs(judged: Judged) -> str:
    """Describe every output of a case: count its wrong elements, and show yours, expected and difference around the first of them."""
    looks = {name: choose_looks(judged, name) for name in judged.plan.expected}
    parts = []
    for name, look in sorted(looks.items(), key=lambda item: not item[1].any()):
        parts.append(f"<p><b>{html.escape(name)}</b>: {_count(look)}</p>")
        if look.any() or not any(other.any() for other in looks.values()):
            parts.append(_write_grids(judged, name, look))
    used = sorted({int(value) for look in looks.values() for value in np.unique(look)} - {0})
    keys = "".join(f'<span class="course-key {_LOOKS[value][0]}">{_LOOKS[value][1]}</span>' for value in used)
    return "".join(parts) + (f"<p>{keys}</p>" if keys else "")


def _count(look: np.ndarray) -> str:
    wrong = look > 0
    if not wrong.any():
        return f"all right, {look.size} elements"
    told = f"{int(wrong.sum())} of {look.size} elements wrong"
    if look.ndim != 2:
        return told
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    return f"{told}, in {_list_places('row', rows, len(look))} and {_list_places('column', columns, look.shape[1])}"


def _list_places(noun: str, places: np.ndarray, size: int) -> str:
    if len(places) == size:
        return f"every {noun}"
    if len(places) == 1:
        return f"{noun} {places[0]}"
    if len(places) == places[-1] - places[0] + 1:
        return f"{noun}s {places[0]} to {places[-1]}"
    return f"{len(places)} {noun}s from {places[0]} to {places[-1]}"


def _write_grids(judged: Judged, name: str, look: np.ndarray) -> str:
    expected, actual = judged.plan.expected[name].values, judged.outputs[name]
    grid = np.atleast_2d(look)
    first = np.argwhere(grid > 0)[0] if grid.any() else np.zeros(2, int)
    # Begin one row and one column before the first wrong element: the edge between right and wrong often shows the cause.
    top, left = (max(0, min(at - 1, size - most)) for at, size, most in zip(first, grid.shape, (_ROWS, _COLUMNS), strict=True))
    window = np.s_[top : top + _ROWS, left : left + _COLUMNS]
    with np.errstate(all="ignore"):
        difference = actual - expected + 0.0  # -0 becomes 0
    sides = {"yours": actual, "expected": expected, "difference": difference}
    cells = {side: np.atleast_2d(values)[window] for side, values in sides.items()}
    looks = {side: grid[window] * (side != "expected") for side in sides}
    if look.ndim == 2:
        rows = [str(top + row) for row in range(len(grid[window]))]
        tables = "".join(_write_grid(side, left, rows, cells[side], looks[side]) for side in sides)
    else:  # vectors: yours, expected and difference are three rows of one table
        tables = _write_grid("", left, list(sides), *(np.concatenate(list(part.values())) for part in (cells, looks)))
    cut = any(size > most for size, most in zip(grid.shape, (_ROWS, _COLUMNS), strict=True))
    shown = f"<small>Shown: {name}[{_span(top, grid.shape[0], _ROWS) + ', ' if look.ndim == 2 else ''}{_span(left, grid.shape[1], _COLUMNS)}].</small>"
    return f'<div class="course-grids">{tables}</div>{shown if cut else ""}'


def _span(start: int, size: int, most: int) -> str:
    return f"{start}:{min(start + most, size)}"


def _write_grid(title: str, left: int, rows: list[str], values: np.ndarray, looks: np.ndarray) -> str:
    head = "".join(f'<th scope="col">{left + column}</th>' for column in range(values.shape[1]))
    body = ""
    for row, line, look in zip(rows, values, looks, strict=True):
        cells = "".join(_write_cell(value, *_LOOKS[int(s)]) for value, s in zip(line, look, strict=True))
        body += f'<tr><th scope="row">{row}</th>{cells}</tr>'
    caption = f"<caption>{title}</caption>" if title else ""
    return f'<table class="course-grid">{caption}<tr><td></td>{head}</tr>{body}</table>'


def _write_cell(value: float, look: str, meaning: str) -> str:
    number = "none" if look == _LOOKS[Element.UNWRITTEN][0] else html.escape(_format_cell(float(value)))
    return f'<td class="{look}" title="{meaning}">{number}</td>' if look else f"<td>{number}</td>"


def _format_cell(value: float) -> str:
    return f"{value:.0f}" if value == 0 else format_number(value, 4)  # .0f keeps the sign of -0
