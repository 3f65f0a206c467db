"""Print the findings of `course doctor`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from course_lib.base.text import wrap
from course_lib.doctor import NOTE, OK, PROBLEM, DoctorFinding, can_run

_MARKS = {OK: "[green]✓[/]", NOTE: "[yellow]![/]", PROBLEM: "[red]✗[/]"}


def show_findings(findings: list[DoctorFinding], console: Console) -> None:
    """Print one paragraph per finding, with its remedy after an arrow below, and whether the course can run.

    rich must not wrap or cut the lines: a command or a path that is longer than the terminal is wide stays whole and can be copied.
    """
    for finding in findings:
        what, *more = wrap(f"{finding.name}: {finding.what}", console.width - 2)
        what = f"[bold]{escape(finding.name)}[/bold]{escape(what.removeprefix(finding.name))}"
        lines = [f"{_MARKS[finding.level]} {what}", *(f"  {escape(line)}" for line in more)]
        if finding.remedy:
            lines += map(escape, wrap(finding.remedy, console.width, "  → ", " " * 4))
        console.print("\n".join(lines), soft_wrap=True)
    console.print(_conclusion(findings))


def _conclusion(findings: list[DoctorFinding]) -> str:
    if can_run(findings):
        return "The course can run here."
    remedies = any(f.remedy for f in findings if f.level == PROBLEM)
    advice = "Follow the arrows below ✗, from the top." if remedies else "The lines with ✗ say why."
    return f"[red]The course cannot run here yet.[/] {advice}"
