"""A verdict drawn for the terminal: its pieces from the top, each apart, at any width and without
colour too."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

from course_lib.base import paths
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.catalog import Exercise
from course_lib.grading.kind import find_kind
from course_lib.grading.report import (
    Report,
    describe_count,
    describe_count_place,
    format_count_value,
    list_count_rows,
    make_report,
    quote_line,
)
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Verdict

STYLES = {
    PASS: "green",
    FAIL: "red",
    ERROR: "red",
    NOT_ATTEMPTED: "yellow",
    GRADER_FAULT: "magenta",
}
_INDENT = "  "


class VerdictView:
    """The text of a verdict for ``course check`` and ``course watch``. There is no box: a line can
    then be copied, and nothing has to be cut to fit but the learner's own line of code."""

    def __init__(self, verdict: Verdict, exercise: Exercise):
        self.verdict, self.exercise = verdict, exercise
        self.told, self.colour = make_report(verdict, exercise), STYLES[verdict.status]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.told.headline, f"bold {self.colour}")
        for paragraph in self._paragraphs(console, options.max_width):
            if paragraph:
                yield Text()
                yield from paragraph
        yield Text()
        yield Text(self.told.footer, "dim")

    def _paragraphs(self, console: Console, width: int) -> Iterator[list[Text]]:
        report = self.told
        yield [_prose(report.cause, "bold" if self.verdict.headline else "")]
        yield _finding(report, console, width)
        yield self._quotation(width)
        yield [_prose(report.question)] if report.question else []
        yield [_prose(report.common)] if report.common else []
        yield (
            [Text(_introduce_output(self.verdict, self.exercise), "dim"), Text(report.printed)]
            if report.printed
            else []
        )
        yield _counts(report)
        if report.debrief:
            yield [Text(f"{_('What you avoided.')} ", "bold") + _prose(report.debrief)]
            yield [Text(f"{_('Further.')} ", "bold") + _prose(report.further)]
        if self.verdict.status in (FAIL, ERROR) and self.verdict.cause != "no_file":
            yield [_prose(_("Stuck? `course hint {id}`").format(id=self.exercise.id), "dim")]

    def _quotation(self, width: int) -> list[Text]:
        """Return the file with the line's number, the line, and carets below it with the label, or
        below them where it does not fit."""
        place = self.told.place
        if place is None:
            return []
        quotation = quote_line(place, width)
        file = Text(f"{self.told.file}:{place.line}", Style(link=paths.locate(place.file).as_uri()))
        lead = [Text(place.lead)] if place.lead else []
        lines = [Text.assemble((quotation.gutter, "dim"), quotation.source)]
        below = f"{quotation.carets} {quotation.label}".rstrip()
        fits = cell_len(quotation.below + below) <= width
        if quotation.carets:
            lines.append(
                Text.assemble(
                    (quotation.below, "dim"), (below if fits else quotation.carets, self.colour)
                )
            )
        for line in lines:
            line.no_wrap, line.overflow = True, "ignore"
        return [
            *lead,
            file,
            *lines,
            *(
                []
                if fits
                else [Text.assemble((quotation.below, "dim"), (quotation.label, self.colour))]
            ),
        ]


def verdict_view(verdict: Verdict, exercise: Exercise) -> VerdictView:
    """Return the verdict for a rich console to print."""
    return VerdictView(verdict, exercise)


def _introduce_output(verdict: Verdict, exercise: Exercise) -> str:
    if verdict.status == GRADER_FAULT:
        return _("The grader printed:")
    return (
        _("The kernel printed:")
        if find_kind(exercise.kind).is_of_kernels
        else _("The function printed:")
    )


def _finding(report: Report, console: Console, width: int) -> list[Text]:
    lines = (
        [_prose(join_sentences(_("Smallest failing case:"), report.case))] if report.case else []
    )
    column = max((cell_len(name) for name, value in report.numbers), default=0) + 1
    for text in (
        *(f"{set_cell_size(name, column)}{value}" for name, value in report.numbers),
        report.words,
    ):
        if text:
            lines += [
                Text(_INDENT) + line for line in _prose(text).wrap(console, width - len(_INDENT))
            ]
    return lines


def _counts(report: Report) -> list[Text]:
    """Return a line for each count: the learner's number, the course's and the least possible."""
    if not report.counts:
        return []
    names = [f"{_INDENT}{describe_count(count)}" for count in report.counts]
    column = max(map(cell_len, names))
    owners = [owner for owner, _value in list_count_rows(report.counts[0])]
    widths = [max(cell_len(owner), 5) for owner in owners]
    head = "".join(
        f"  {' ' * (width - cell_len(owner))}{owner}"
        for owner, width in zip(owners, widths, strict=True)
    )
    lines = [Text(" " * column + head, "dim")]
    place = ""
    for name, count in zip(names, report.counts, strict=True):
        if count.place != place:
            place = count.place
            lines.append(Text(describe_count_place(place), "dim"))
        numbers = "".join(
            f"  {format_count_value(value):>{width}}"
            for (_owner, value), width in zip(list_count_rows(count), widths, strict=True)
        )
        lines.append(Text(set_cell_size(name, column)).append(numbers, "bold"))
    return lines


def _prose(text: str, style: str = "") -> Text:
    prose = Text(text, style)
    prose.highlight_regex(r"`[^`\n]+`", "cyan")
    return prose
