"""A verdict drawn for the terminal."""

from __future__ import annotations

from rich.markup import escape
from rich.panel import Panel

from course_lib.catalog import Exercise
from course_lib.grading.report import report
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Verdict

STYLES = {PASS: "green", FAIL: "red", ERROR: "red", NOT_ATTEMPTED: "yellow", GRADER_FAULT: "magenta"}


def verdict_view(verdict: Verdict, exercise: Exercise) -> Panel:
    """What `course check` and `course watch` print of a verdict."""
    told = report(verdict, exercise)
    colour = STYLES[verdict.status]
    body = escape(told.text)
    if verdict.printed and verdict.status != PASS:
        body += f"\n\n[dim]The kernel printed:[/dim]\n{escape(verdict.printed[-1500:])}"
    if told.debrief:
        body += f"\n\n[bold]What you avoided.[/bold] {escape(told.debrief)}\n\n[bold]Further.[/bold] {escape(exercise.stretch)}"
    elif verdict.status in (FAIL, ERROR):
        body += f"\n\n[dim]Stuck? `course hint {exercise.id}`[/dim]"
    return Panel(
        body,
        title=f"[bold {colour}]{escape(told.headline)}[/]",
        subtitle=f"[dim]{escape(told.footer)}[/]",
        title_align="left",
        border_style=colour,
    )
