"""Split a verdict into plain pieces of text, which the command line and the panels lay out in their
own way."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.wording import BEYOND, format_number
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    Finding,
    KernelCount,
    Place,
    Verdict,
)

# A sign stands beside the status in words, so that colour is never the only sign.
SIGNS = {PASS: "✓", FAIL: "✗", ERROR: "!", NOT_ATTEMPTED: "○", GRADER_FAULT: "?"}
TAB = 4
_PRINTED = 1500  # characters of the printed output that are shown
_NARROWEST = 10  # columns that a quoted line gets at least


@dataclass(frozen=True)
class Quoted:
    """A line of code and the row of carets below it. ``gutter`` stands before the line, ``below``
    before the carets; ``start`` and ``end`` bound the part that the carets mark, in characters of
    ``source``; ``label`` follows the carets."""

    gutter: str
    source: str
    start: int
    end: int
    below: str
    carets: str
    label: str


@dataclass(frozen=True)
class Report:
    """The pieces of a verdict that are shown, from top to bottom; a piece is empty if there is
    nothing to say.

    ``headline`` names exercise, status and number of right cases. ``cause`` says what is wrong, or
    is the whole message if no cause has a headline. ``case`` is the first failing case, ``words``
    says what happened in it. ``numbers`` are rows of a name and a value: the inputs, if they are
    few, and the wrong element. ``file`` and ``place`` name the line. ``question`` leads to the
    remedy, ``common`` says how many cases fail and what they share, ``printed`` is the end of the
    printed output, ``footer`` says how the code was run. ``debrief`` and ``further`` follow a pass.
    ``counts`` say what the kernel does, whether it passes or not.
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
    counts: tuple[KernelCount, ...]


def describe_status(status: str) -> str:
    """Return a verdict's status in words."""
    words = {
        PASS: _("pass"),
        FAIL: _("fail"),
        ERROR: _("error"),
        NOT_ATTEMPTED: _("not attempted"),
        GRADER_FAULT: _("grader fault"),
    }
    return words.get(status, status)


def _describe_mode(name: str) -> str:
    """Say where the code ran."""
    return _(find_mode(name).where)


def make_report(verdict: Verdict, exercise: Exercise) -> Report:
    """Make the pieces. They hold no control characters for a terminal: a verdict's texts were made
    visible before."""
    right = sum(case.status == "pass" for case in verdict.cases)
    words = (
        _("{right} of {cases} hidden cases right")
        if verdict.hidden
        else _("{right} of {cases} cases right")
    )
    count = words.format(right=right, cases=len(verdict.cases))
    if find_kind(exercise.kind).counts_parts:
        caught = verdict.count_right_parts(exercise.entry_points)
        count = _("{caught} of {bugs} bugs caught").format(
            caught=caught, bugs=len(exercise.entry_points)
        )
    status = _(", ").join([describe_status(verdict.status), *([count] if verdict.cases else [])])
    ran = [_describe_mode(verdict.mode)] if verdict.cases else []
    if verdict.hidden:  # the isolation matters to an instructor
        ran += [_("isolation: {tier}").format(tier=verdict.tier)] if verdict.cases else []
        ran += [_("hidden cases {secret}").format(secret=verdict.hidden)]
    first, place = verdict.first or Finding("", ""), verdict.place
    return Report(
        headline=_("{exercise}: {status}").format(
            exercise=f"{SIGNS[verdict.status]} {exercise.id} {exercise.title}", status=status
        ),
        cause=verdict.headline or verdict.message,
        case=first.case,
        words=_describe_words(first),
        numbers=_list_numbers(first),
        file=place.file if place else "",
        place=place,
        question=verdict.question,
        common=verdict.common,
        printed=verdict.printed[-_PRINTED:] if verdict.status != PASS else "",
        footer=_(", ").join([*ran, f"{verdict.seconds:.1f} s"]),
        debrief=exercise.debrief if verdict.status == PASS else "",
        further=exercise.stretch if verdict.status == PASS else "",
        counts=verdict.counts,
    )


def quote_line(place: Place, width: int = 0) -> Quoted:
    """Quote the line of a verdict, with spaces for tabs. If ``width`` is given, cut it to that many
    columns and keep the carets in view."""
    gutter = f"{place.line} | "
    source, start, end = (
        part.expandtabs(TAB)
        for part in (place.source, place.source[: place.start], place.source[: place.end])
    )
    start, end = len(start), len(end)
    source = source[:end] + source[end:].rstrip()
    if width:
        source, start, end = _cut(source, start, end, max(width - len(gutter), _NARROWEST))
    # There is at least one caret: a part that is missing at the end of a line is marked behind the
    # line.
    carets = " " * cell_len(source[:start]) + "^" * max(
        cell_len(source[start:end]), place.end > place.start
    )
    return Quoted(
        gutter, source, start, end, f"{' ' * len(str(place.line))} | ", carets, place.label
    )


def describe_count(count: KernelCount) -> str:
    """Say what is counted, and the most that the exercise allows."""
    words = _("{name} {unit}").format(name=count.name, unit=count.unit)
    if count.limit is None:
        return words
    return _("{what}, at most {limit}").format(what=words, limit=format_count_value(count.limit))


def describe_count_place(place: str) -> str:
    """Say for which shape, or in which code, it is counted."""
    return make_sentence(_("counted {place}").format(place=place))


def format_count_value(value: float | None) -> str:
    """Return "?" for what was not counted."""
    return "?" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def list_count_rows(count: KernelCount) -> tuple[tuple[str, float | None], ...]:
    """Return the three numbers of a count, each with whose it is."""
    return ((_("yours"), count.yours), (_("course"), count.course), (_("least"), count.least))


def format_multiple(ratio: float) -> str:
    """Format a multiple with three digits: "41.2 times", "69,500 times"."""
    if ratio >= BEYOND:
        return _("more than {number} times").format(number=f"{BEYOND:.0e}")
    number = (
        f"{ratio:.1f}"
        if ratio < 100
        else f"{float(f'{ratio:.3g}'):,.0f}"
        if ratio < 1e7
        else f"{ratio:.1e}"
    )
    return _("{number} times").format(number=number)


def _describe_words(first: Finding) -> str:
    if not first.element:
        return make_sentence(first.words) if first.words else ""
    if first.size == 1:
        return ""
    multiple = format_multiple(first.worst) if first.worst else ""
    if first.wrong == 1:
        words = _("{wrong} of {size} elements of {output} is wrong.")
    elif not first.worst:
        words = _("{wrong} of {size} elements of {output} are wrong.")
    elif first.worst < BEYOND:
        words = _(
            "{wrong} of {size} elements of {output} are wrong, by up to {multiple} the allowed"
            " error."
        )
    else:
        words = _(
            "{wrong} of {size} elements of {output} are wrong, by {multiple} the allowed error."
        )
    return words.format(
        wrong=first.wrong, size=first.size, output=first.element.split("[")[0], multiple=multiple
    )


def _list_numbers(first: Finding) -> tuple[tuple[str, str], ...]:
    inputs = tuple((name, f" {value}") for name, value in first.inputs)
    if not first.element:
        return inputs
    rows = (
        *inputs,
        (_("expected {element}").format(element=first.element), _align(first.want)),
        (_("got"), _align(first.got)),
    )
    if first.ratio is None or first.got is None or first.want is None:
        return rows
    words = _("{difference}, {multiple} the allowed error")
    difference = words.format(
        difference=f"{first.got - first.want: .6g}", multiple=format_multiple(first.ratio)
    )
    return (*rows, (_("difference"), difference))


def _align(value: float | None) -> str:
    """Format the number, with a space in front if it has no minus sign."""
    text = "" if value is None else format_number(value)
    return text if text.startswith("-") else f" {text}"


def _cut(source: str, start: int, end: int, width: int) -> tuple[str, int, int]:
    if cell_len(source) <= width:
        return source, start, end
    # the marked part and a few columns behind it stay in view
    seen = min(end, start + width // 2) + width // 4
    first, last = 0, len(source)
    # each of the two ellipses takes one column
    while first < start and cell_len(source[first:seen]) > width - 2:
        first += 1
    while cell_len(source[first:last]) > width - 2:
        last -= 1
    shift = bool(first) - first
    cut = f"{'…' * bool(first)}{source[first:last]}{'…' * (last < len(source))}"
    return cut, start + shift, min(end, last) + shift
