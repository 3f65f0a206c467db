"""Split a verdict into plain pieces of text, which the command line and the panels lay out in their own way."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from course_lib.catalog import Exercise
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.wording import BEYOND, format_number
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Finding, Place, Verdict

# A sign stands beside the status in words, so that colour is never the only sign.
SIGNS = {PASS: "✓", FAIL: "✗", ERROR: "!", NOT_ATTEMPTED: "○", GRADER_FAULT: "?"}
TAB = 4
_PRINTED = 1500  # characters of the printed output that are shown
_NARROWEST = 10  # columns that a quoted line gets at least

_WHERE = {
    "gpu": "on the GPU",
    "cpu": "in the interpreter (CPU)",
    "torch": "in PyTorch (CPU)",
    "numpy": "in NumPy",
    "autograd": "in PyTorch's autograd (CPU)",
    "tests": "in PyTorch (CPU)",
}


@dataclass(frozen=True)
class Quoted:
    """A line of code and the row of carets below it. ``gutter`` stands before the line, ``below`` before the carets;
    ``start`` and ``end`` bound the part that the carets mark, in characters of ``source``; ``label`` follows the carets."""

    gutter: str
    source: str
    start: int
    end: int
    below: str
    carets: str
    label: str


@dataclass(frozen=True)
class Report:
    """The pieces of a verdict that are shown, from top to bottom; a piece is empty if there is nothing to say.

    ``headline`` names exercise, status and number of right cases. ``cause`` says what is wrong, or is the whole message if no cause
    has a headline. ``case`` is the first failing case, ``words`` says what happened in it. ``numbers`` are rows of a name and a value:
    the inputs, if they are few, and the wrong element. ``file`` and ``place`` name the line. ``question`` leads to the remedy,
    ``common`` says how many cases fail and what they share, ``printed`` is the end of the printed output, ``footer`` says how the code
    was run. ``debrief`` and ``further`` follow a pass.
    """

    headline: str
    cause: str
    case: str
    words: str
    numbers: tuple[tuple[str, str], ...]
    file: str
    place: Place | None
    question: str
    common: str
    printed: str
    footer: str
    debrief: str
    further: str


def make_report(verdict: Verdict, exercise: Exercise) -> Report:
    """Make the pieces. They hold no control characters for a terminal: a verdict's texts were made visible before."""
    right = sum(case.status == "pass" for case in verdict.cases)
    kind = "hidden cases" if verdict.hidden else "cases"
    count = f", {right} of {len(verdict.cases)} {kind} right" if verdict.cases else ""
    if exercise.kind == "tests" and verdict.cases:
        count = f", {verdict.count_right_parts(exercise.entry_points)} of {len(exercise.entry_points)} bugs caught"
    where = _WHERE.get(verdict.mode, verdict.mode)
    ran = f"{where}, " if verdict.cases else ""
    if verdict.hidden:  # the isolation matters to an instructor
        ran += f"isolation: {verdict.tier}, " * bool(verdict.cases) + f"hidden cases {verdict.hidden}, "
    first, place = verdict.first or Finding("", ""), verdict.place
    return Report(
        headline=f"{SIGNS[verdict.status]} {exercise.id} {exercise.title}: {verdict.status}{count}",
        cause=verdict.headline or verdict.message,
        case=first.case,
        words=_describe_words(first),
        numbers=_list_numbers(first),
        file=place.file if place else "",
        place=place,
        question=verdict.question,
        common=verdict.common,
        printed=verdict.printed[-_PRINTED:] if verdict.status != PASS else "",
        footer=f"{ran}{verdict.seconds:.1f} s",
        debrief=exercise.debrief if verdict.status == PASS else "",
        further=exercise.stretch if verdict.status == PASS else "",
    )


def quote_line(place: Place, width: int = 0) -> Quoted:
    """Quote the line of a verdict, with spaces for tabs. If ``width`` is given, cut it to that many columns and keep the carets in view."""
    gutter = f"{place.line} | "
    source, start, end = (part.expandtabs(TAB) for part in (place.source, place.source[: place.start], place.source[: place.end]))
    start, end = len(start), len(end)
    source = source[:end] + source[end:].rstrip()
    if width:
        source, start, end = _cut(source, start, end, max(width - len(gutter), _NARROWEST))
    # There is at least one caret: a part that is missing at the end of a line is marked behind the line.
    carets = " " * cell_len(source[:start]) + "^" * max(cell_len(source[start:end]), place.end > place.start)
    return Quoted(gutter, source, start, end, f"{' ' * len(str(place.line))} | ", carets, place.label)


def format_multiple(ratio: float) -> str:
    """Format a multiple with three digits: "41.2 times", "69,500 times"."""
    return (
        f"{ratio:.1f} times"
        if ratio < 100
        else f"{float(f'{ratio:.3g}'):,.0f} times"
        if ratio < 1e7
        else f"{ratio:.1e} times"
        if ratio < BEYOND
        else f"more than {BEYOND:.0e} times"
    )


def _describe_words(first: Finding) -> str:
    if not first.element:
        return make_sentence(first.words) if first.words else ""
    if first.size == 1:
        return ""
    output = first.element.split("[")[0]
    up_to = "up to " if first.worst and first.worst < BEYOND else ""
    worst = f", by {up_to}{format_multiple(first.worst)} the allowed error" if first.wrong > 1 and first.worst else ""
    return f"{first.wrong} of {first.size} elements of {output} {'is' if first.wrong == 1 else 'are'} wrong{worst}."


def _list_numbers(first: Finding) -> tuple[tuple[str, str], ...]:
    given = tuple((name, f" {value}") for name, value in first.inputs)
    if not first.element:
        return given
    rows = (*given, (f"expected {first.element}", _align(first.want)), ("got", _align(first.got)))
    if first.ratio is None or first.got is None or first.want is None:
        return rows
    return (*rows, ("difference", f"{first.got - first.want: .6g}, {format_multiple(first.ratio)} the allowed error"))


def _align(value: float | None) -> str:
    """Format the number, with a space in front if it has no minus sign."""
    text = "" if value is None else format_number(value)
    return text if text.startswith("-") else f" {text}"


def _cut(source: str, start: int, end: int, width: int) -> tuple[str, int, int]:
    if cell_len(source) <= width:
        return source, start, end
    seen = min(end, start + width // 2) + width // 4  # the marked part and a few columns behind it stay in view
    first, last = 0, len(source)
    while first < start and cell_len(source[first:seen]) > width - 2:  # each of the two ellipses takes one column
        first += 1
    while cell_len(source[first:last]) > width - 2:
        last -= 1
    shift = bool(first) - first
    cut = f"{'…' * bool(first)}{source[first:last]}{'…' * (last < len(source))}"
    return cut, start + shift, min(end, last) + shift
