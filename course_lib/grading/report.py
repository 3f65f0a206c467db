"""A verdict as a person reads it: plain pieces that the command line and the panels dress in their own way."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from course_lib.catalog import Exercise
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.wording import BEYOND, format_number
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Finding, Place, Verdict

# a sign beside the word, so that colour is never alone in saying it
SIGNS = {PASS: "✓", FAIL: "✗", ERROR: "!", NOT_ATTEMPTED: "○", GRADER_FAULT: "?"}
TAB = 4
_PRINTED = 1500  # characters
_NARROWEST = 10  # columns of a quoted line

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
    ``start`` and ``end`` are what the carets point to, in characters of ``source``; ``label`` follows them."""

    gutter: str
    source: str
    start: int
    end: int
    below: str
    carets: str
    label: str


@dataclass(frozen=True)
class Report:
    """What is shown of a verdict, from the top; each piece is empty where there is nothing to say.

    ``headline`` names exercise, status and cases. ``cause`` says what is wrong, or all there is to say where nothing is.
    ``case`` is the first failing case, ``words`` what happened in it, ``numbers`` its inputs, where they are few, and the wrong
    element, as rows of a name and a value. ``file`` and ``place`` are the line. ``question`` leads to the remedy, ``common`` is what fails and what it
    shares, ``printed`` the end of what the code printed, ``footer`` how it was run; ``debrief`` and ``further`` follow a pass.
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
    """The pieces. Nothing in them is obeyed by a terminal: a verdict's texts are visible already."""
    right = sum(case.status == "pass" for case in verdict.cases)
    kind = "hidden cases" if verdict.hidden else "cases"
    count = f", {right} of {len(verdict.cases)} {kind} right" if verdict.cases else ""
    if exercise.kind == "tests" and verdict.cases:
        count = f", {verdict.count_right_parts(exercise.entry_points)} of {len(exercise.entry_points)} bugs caught"
    where = _WHERE.get(verdict.mode, verdict.mode)
    ran = f"{where}, isolation: {verdict.tier}, " if verdict.cases else ""
    ran += f"hidden cases {verdict.hidden}, " if verdict.hidden else ""
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
    """The line of a verdict, with tabs made spaces; cut to ``width`` columns where one is given, with the carets in view."""
    gutter = f"{place.line} | "
    source, start, end = (
        part.expandtabs(TAB) for part in (place.source, place.source[: place.start], place.source[: place.end])
    )
    start, end = len(start), len(end)
    source = source[:end] + source[end:].rstrip()
    if width:
        source, start, end = _cut(source, start, end, max(width - len(gutter), _NARROWEST))
    # at least one: what is missing at the end of a line is marked behind it
    carets = " " * cell_len(source[:start]) + "^" * max(cell_len(source[start:end]), place.end > place.start)
    return Quoted(gutter, source, start, end, f"{' ' * len(str(place.line))} | ", carets, place.label)


def format_multiple(ratio: float) -> str:
    """A multiple to three digits: "41.2 times", "69,500 times"."""
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
    """The number, with the place of a sign in front of it."""
    text = "" if value is None else format_number(value)
    return text if text.startswith("-") else f" {text}"


def _cut(source: str, start: int, end: int, width: int) -> tuple[str, int, int]:
    if cell_len(source) <= width:
        return source, start, end
    seen = min(end, start + width // 2) + width // 4  # what the carets point to, and a little of what follows
    first, last = 0, len(source)
    while first < start and cell_len(source[first:seen]) > width - 2:  # a column for each of the two marks
        first += 1
    while cell_len(source[first:last]) > width - 2:
        last -= 1
    shift = bool(first) - first
    cut = f"{'…' * bool(first)}{source[first:last]}{'…' * (last < len(source))}"
    return cut, start + shift, min(end, last) + shift
