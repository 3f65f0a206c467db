"""Run a hunt's kernel on an input, in another process, and make tables of the results that a page
can draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.catalog import texts
from course_lib.grading.public import Element, Judged, run_cases
from course_lib.hunt.collection import Hunt
from course_lib.hunt.probe import Probe, find_options

_ROWS, _COLUMNS = 3, 5  # rows and columns of a tensor that are shown
_STATISTICS = ("mean", "std")
_WIDTH = 8  # characters of a number at most


@dataclass(frozen=True)
class Cell:
    """A number as text; ``whole`` has more digits. ``look`` is "wrong" for an expected number that
    the kernel missed, else ""."""

    text: str
    look: str = ""
    whole: str = ""


@dataclass(frozen=True)
class Table:
    """A part of a tensor. ``columns`` are the heads of the cells, ``rows`` have a name and cells. A
    column "..." stands for columns left out.

    ``kind`` is "input", "output" or "expected".
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class InputRow:
    """A row of a tensor to draw; ``kind`` is the kind of its Table."""

    name: str
    kind: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class InputTable:
    """Rows of several tensors with the same columns; a row without cells stands for rows left
    out."""

    columns: tuple[str, ...]
    rows: tuple[InputRow, ...]


@dataclass(frozen=True)
class Answer:
    """The results of the kernel on one input.

    ``notes`` has facts that are visible without the expected results: elements that were never
    written, a run that was stopped. ``tables`` has the inputs and outputs, ``expected`` the
    expected outputs. ``exposes`` tells whether the input shows the mistake. ``worst`` then says in
    words how large the error is; otherwise it is "".
    """

    probe: Probe
    tables: tuple[Table, ...]
    expected: tuple[Table, ...]
    notes: tuple[str, ...]
    exposes: bool
    worst: str = ""


class UnfairProbe(Exception):
    """Raised if the right kernel also fails on an input, so that the input says nothing about the
    mistake."""


def ask(hunt: Hunt, probes: list[Probe]) -> list[Answer]:
    """Run the hunt's kernel on each input.

    Raises: UnfairProbe if both the hunt's kernel and the right kernel are wrong on an input;
        EnvironmentFault if this machine cannot run kernels.
    """
    options = find_options(hunt.exercise_id)
    cases = [options.make_case(probe) for probe in probes]
    judged = run_cases(hunt.exercise, hunt.source, "the hunt's kernel", cases)
    doubtful = [n for n, j in enumerate(judged) if not j.right]
    if doubtful:
        right = run_cases(
            hunt.exercise,
            texts.read_solution(hunt.exercise),
            "the solution",
            [cases[n] for n in doubtful],
        )
        if not all(j.right for j in right):
            raise UnfairProbe
    return [make_answer(probe, j) for probe, j in zip(probes, judged, strict=True)]


def arrange(answer: Answer, compared: bool) -> list[InputTable]:
    """Arrange an answer for drawing: tensors with the same columns form one grid.

    ``compared``: put the expected row below each row of an output, and leave out the inputs, which
    were shown before.
    """
    expected = {table.name: table for table in answer.expected} if compared else {}
    groups: dict[tuple[str, ...], list[Table]] = {}
    for table in answer.tables:
        if table.kind == "output" or not compared:
            groups.setdefault(tuple(c for c in table.columns if c not in _STATISTICS), []).append(
                table
            )
    return [_make_grid(tables, expected) for tables in groups.values()]


def _make_grid(tables: list[Table], expected: dict[str, Table]) -> InputTable:
    """Make one grid of tensors with the same columns. Below each row of a tensor that ``expected``
    names stands its expected row."""
    rows: list[InputRow] = []
    for table in tables:
        wanted = expected[table.name].rows if table.name in expected else ()
        for number, (name, cells) in enumerate(table.rows):
            rows.append(InputRow(name, table.kind, cells))
            if cells and wanted:
                marked_cells = (
                    _tell_apart(cell, want)
                    for cell, want in zip(cells, wanted[number][1], strict=True)
                )
                rows.append(InputRow(_("expected"), "expected", tuple(marked_cells)))
    return InputTable(max((table.columns for table in tables), key=len), tuple(rows))


def make_answer(probe: Probe, judged: Judged) -> Answer:
    plan = judged.plan
    plain_weights = ("w", "b") if probe.weights == "plain" else ()
    shown_inputs = [
        (t.name, t.values)
        for t in plan.tensors
        if t.values is not None and t.name not in plain_weights
    ]
    inputs = tuple(_show(name, "input", values.astype(np.float64)) for name, values in shown_inputs)
    outputs = tuple(_show(name, "output", values) for name, values in judged.outputs.items())
    wrong = {name: elements.wrong for name, elements in judged.elements.items()}
    expected = tuple(
        _show(name, "expected", plan.expected[name].values, wrong.get(name))
        for name in plan.expected
    )
    return Answer(
        probe,
        inputs + outputs,
        expected,
        tuple(_list_notes(judged)),
        not judged.right,
        _describe_worst(judged),
    )


def _list_notes(judged: Judged) -> list[str]:
    unwritten = _("{count} of the {size} elements of {output} were never written.")
    notes = [
        unwritten.format(count=d.count, size=d.size, output=d.output)
        for d in judged.deviations
        if d.kind is Element.UNWRITTEN
    ]
    if judged.outside:
        name, positions = next(iter(judged.outside.items()))
        notes.append(
            _("{count} elements beside {name} were changed.").format(
                count=len(positions), name=name
            )
        )
    if judged.fault and not judged.outside:
        notes.append(_("The run was stopped: an access went past the end of a tensor."))
    elif not judged.ran:
        notes.append(_("The run was stopped before its end."))
    return notes


def _describe_worst(judged: Judged) -> str:
    if judged.right:
        return ""
    for deviation in judged.deviations:
        element = f"{deviation.output}[{', '.join(map(str, deviation.where[0]))}]"
        if deviation.kind is not Element.UNWRITTEN:
            far = _(
                "{count} of {size} elements of {output} are wrong, by up to {times} times what is"
                " allowed; the first is {element}."
            )
            words = (
                _("{count} of {size} elements of {output} are wrong; the first is {element}.")
                if deviation.ratio is None
                else far
            )
            times = "" if deviation.ratio is None else f"{float(f'{deviation.ratio:.3g}'):,g}"
            return words.format(
                count=deviation.count,
                size=deviation.size,
                output=deviation.output,
                times=times,
                element=element,
            )
    return ""


def _show(name: str, kind: str, values: np.ndarray, wrong: np.ndarray | None = None) -> Table:
    """Make a table of the first rows and columns and the last. For an output with rows, add each
    row's mean and standard deviation."""
    matrix = np.atleast_2d(values)
    marks = np.zeros(matrix.shape, bool) if wrong is None else np.atleast_2d(wrong)
    columns, rows = _choose(matrix.shape[1], _COLUMNS), _choose(matrix.shape[0], _ROWS)
    whole = values.ndim == 2 and kind != "input"
    heads = tuple("..." if c is None else str(c) for c in columns) + _STATISTICS * whole
    shown = []
    for row in rows:
        if row is None:
            shown.append(("...", ()))
            continue
        cells = [
            Cell("...") if c is None else _write(matrix[row, c], marks[row, c]) for c in columns
        ]
        if whole:
            with np.errstate(invalid="ignore"):
                cells += [_write_statistic(matrix[row].mean()), _write_statistic(matrix[row].std())]
        shown.append((f"{name}[{row}]" if values.ndim == 2 else name, tuple(cells)))
    return Table(name, kind, heads, tuple(shown))


def _choose(size: int, most: int) -> list[int | None]:
    """Choose the indices below ``size`` to show; None stands for those left out."""
    return list(range(size)) if size <= most else [*range(most - 2), None, size - 1]


def _write(value: float, wrong: bool) -> Cell:
    return Cell(_shorten(value), "wrong" if wrong else "", f"{value:.8g}")


def _tell_apart(cell: Cell, want: Cell) -> Cell:
    """Return the expected cell, with more digits if it is wrong but would look the same as the
    kernel's."""
    return replace(want, text=want.whole) if want.look and want.text == cell.text else want


def _write_statistic(value: float) -> Cell:
    """Write a mean or standard deviation; the rounding error of one that is 0 is shown as 0."""
    return Cell("0" if abs(value) < 1e-9 else _shorten(value))


def _shorten(value: float) -> str:
    """Write ``value`` with five digits, enough to tell fp16 from fp32, or with fewer if the text
    would be too long."""
    texts = (f"{value:.{digits}g}" for digits in (5, 4, 3, 2))
    return next((text for text in texts if len(text) <= _WIDTH), f"{value:.1e}")
