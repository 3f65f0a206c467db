"""The learner's outputs beside the expected ones, number by number, for the case that the verdict
shows."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.words import format_number
from course_lib.catalog import Exercise
from course_lib.grading.public import (
    SIGNS,
    Element,
    Judged,
    check,
    describe_status,
    find_kind,
    make_report,
)
from course_lib.lessons.panel_page import write_inline, write_quotation

_ROWS, _COLUMNS = 6, 8  # the part of an output that is shown, small enough for a narrow page
# the look of an element that is off by little; the key of every other look is an Element
_NEAR = len(Element)
_NEAR_RATIO = 10  # largest error, in allowed errors, that counts as off by little
# an element's look: its class in panel.css
_LOOKS = {
    Element.RIGHT: "", Element.UNWRITTEN: "course-unwritten", Element.WRONG_KIND: "course-nan",
    Element.OFF: "course-far",
    Element.WRONG_ZERO: "course-zero", _NEAR: "course-near",
}  # fmt: skip


def choose_looks(judged: Judged, output: str) -> np.ndarray:
    """Return for each element of ``output`` the key of its look."""
    elements = judged.elements[output]
    is_near = (elements.kinds == Element.OFF) & (elements.ratio <= _NEAR_RATIO)
    return np.where(is_near, _NEAR, elements.kinds)


def compare(exercise: Exercise, path: Path | None = None) -> str:
    """Return HTML for the panel: a sentence, and the outputs of the case that the verdict shows
    (the first case if none fails).

    If no case ran, return only a sentence that says why.
    """
    cases: list[Judged] = []
    verdict = check(exercise, path, take_cases=cases.extend)
    if find_kind(exercise.kind).counts_parts:  # tests have no tensors to compare
        return f"<p>{write_inline(verdict.message)}</p>{write_quotation(make_report(verdict, exercise))}"  # noqa: E501
    ran = [case for case in cases if case.ran and case.outputs]
    if not ran:
        return f"<p>{_('Nothing to compare: {why}').format(why=write_inline(verdict.message))}</p>"
    # more than one answer is right: show what follows from the learner's, case by case
    if ran[0].plan.derive is not None:
        rows = "".join(
            f"<li>{SIGNS.get(c.status, '–')} {write_inline(c.detail)}</li>" for c in verdict.cases
        )
        return f"<p>{write_inline(verdict.message)}</p><ul>{rows}</ul>"
    case = min(ran, key=lambda case: (not case.is_shown, case.passed))
    sentence = _("{id} {status}. The case shown: {case}.")
    sentence = sentence.format(
        id=exercise.id, status=describe_status(verdict.status), case=case.plan.case.describe()
    )
    return f"<p>{html.escape(sentence)}</p>{write_outputs(case)}{write_quotation(make_report(verdict, exercise))}"  # noqa: E501


def write_outputs(judged: Judged) -> str:
    """Describe every output of a case: count its wrong elements, and show yours, expected and
    difference around the first of them."""
    looks = {name: choose_looks(judged, name) for name in judged.plan.expected}
    parts = []
    for name, look in sorted(looks.items(), key=lambda item: not item[1].any()):
        parts.append(f"<p><b>{html.escape(name)}</b>: {_count(look)}</p>")
        if look.any() or not any(other_look.any() for other_look in looks.values()):
            parts.append(_write_grids(judged, name, look))
    used = sorted({int(value) for look in looks.values() for value in np.unique(look)} - {0})
    keys = "".join(
        f'<span class="course-key {_LOOKS[value]}">{_describe_look(value)}</span>' for value in used
    )
    return "".join(parts) + (f"<p>{keys}</p>" if keys else "")


def _describe_look(look: int) -> str:
    return {
        Element.RIGHT: _("right"),
        Element.UNWRITTEN: _("never written"),
        Element.WRONG_KIND: _("NaN or Inf, or a number where one of them belongs"),
        Element.OFF: _("off by more than {ratio} x the allowed error"),
        Element.WRONG_ZERO: _("-0 where 0 belongs, or 0 where -0 belongs"),
        _NEAR: _("off by at most {ratio} x the allowed error"),
    }[look].format(ratio=_NEAR_RATIO)


def _count(look: np.ndarray) -> str:
    wrong = look > 0
    if not wrong.any():
        return _("all right, {size} elements").format(size=look.size)
    if look.ndim != 2:
        return _("{wrong} of {size} elements wrong").format(wrong=int(wrong.sum()), size=look.size)
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    of_rows = (
        _("every row"),
        _("row {first}"),
        _("rows {first} to {last}"),
        _("{count} rows from {first} to {last}"),
    )
    of_columns = (
        _("every column"),
        _("column {first}"),
        _("columns {first} to {last}"),
        _("{count} columns from {first} to {last}"),
    )
    return _("{wrong} of {size} elements wrong, in {rows} and {columns}").format(
        wrong=int(wrong.sum()),
        size=look.size,
        rows=_list_places(rows, len(look), of_rows),
        columns=_list_places(columns, look.shape[1], of_columns),
    )


def _list_places(places: np.ndarray, size: int, forms: tuple[str, str, str, str]) -> str:
    """Describe ``places`` out of ``size`` in one of the ``forms``: for all, for one, for
    neighbours, for others."""
    every, single, neighbours, scattered = forms
    form = (
        every
        if len(places) == size
        else (
            single
            if len(places) == 1
            else neighbours
            if len(places) == places[-1] - places[0] + 1
            else scattered
        )
    )
    return form.format(first=places[0], last=places[-1], count=len(places))


def _write_grids(judged: Judged, name: str, look: np.ndarray) -> str:
    expected, actual = judged.plan.expected[name].values, judged.outputs[name]
    grid = np.atleast_2d(look)
    first_wrong = np.argwhere(grid > 0)[0] if grid.any() else np.zeros(2, int)
    # Begin one row and one column before the first wrong element: the edge between right and wrong
    # often shows the cause.
    top, left = (
        max(0, min(at - 1, size - most))
        for at, size, most in zip(first_wrong, grid.shape, (_ROWS, _COLUMNS), strict=True)
    )
    window = np.s_[top : top + _ROWS, left : left + _COLUMNS]
    with np.errstate(all="ignore"):
        difference = actual - expected + 0.0  # -0 becomes 0
    sides = {"yours": actual, "expected": expected, "difference": difference}
    titles = {"yours": _("yours"), "expected": _("expected"), "difference": _("difference")}
    cells = {side: np.atleast_2d(values)[window] for side, values in sides.items()}
    looks = {side: grid[window] * (side != "expected") for side in sides}
    if look.ndim == 2:
        rows = [str(top + row) for row in range(len(grid[window]))]
        tables = "".join(
            _write_grid(titles[side], left, rows, cells[side], looks[side]) for side in sides
        )
    else:  # vectors: yours, expected and difference are three rows of one table
        tables = _write_grid(
            "",
            left,
            list(titles.values()),
            *(np.concatenate(list(part.values())) for part in (cells, looks)),
        )
    cut = any(size > most for size, most in zip(grid.shape, (_ROWS, _COLUMNS), strict=True))
    part = f"{name}[{_span(top, grid.shape[0], _ROWS) + ', ' if look.ndim == 2 else ''}{_span(left, grid.shape[1], _COLUMNS)}]"  # noqa: E501
    range_note = f"<small>{_('Shown: {part}.').format(part=part)}</small>"
    return f'<div class="course-grids">{tables}</div>{range_note if cut else ""}'


def _span(start: int, size: int, most: int) -> str:
    return f"{start}:{min(start + most, size)}"


def _write_grid(
    title: str, left: int, rows: list[str], values: np.ndarray, looks: np.ndarray
) -> str:
    head = "".join(f'<th scope="col">{left + column}</th>' for column in range(values.shape[1]))
    body = ""
    for row, line, look in zip(rows, values, looks, strict=True):
        cells = "".join(_write_cell(value, int(s)) for value, s in zip(line, look, strict=True))
        body += f'<tr><th scope="row">{row}</th>{cells}</tr>'
    caption = f"<caption>{title}</caption>" if title else ""
    return f'<table class="course-grid">{caption}<tr><td></td>{head}</tr>{body}</table>'


def _write_cell(value: float, look: int) -> str:
    number = _("none") if look == Element.UNWRITTEN else html.escape(_format_cell(float(value)))
    return (
        f'<td class="{_LOOKS[look]}" title="{_describe_look(look)}">{number}</td>'
        if _LOOKS[look]
        else f"<td>{number}</td>"
    )


def _format_cell(value: float) -> str:
    return f"{value:.0f}" if value == 0 else format_number(value, 4)  # .0f keeps the sign of -0
