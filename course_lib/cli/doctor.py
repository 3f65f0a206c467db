"""How `course doctor` prints what it found."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from course_lib.doctor import NOTE, OK, PROBLEM, Finding, can_run

_MARKS = {OK: "[green]✓[/]", NOTE: "[yellow]![/]", PROBLEM: "[red]✗[/]"}


def findings_view(findings: list[Finding]) -> Group:
    """One paragraph a finding, its remedy behind an arrow beneath, and whether the course can run."""
    table = Table.grid(padding=(0, 1))
    for finding in findings:
        table.add_row(_MARKS[finding.level], f"[bold]{escape(finding.name)}[/bold]: {escape(finding.what)}")
        if finding.remedy:
            remedy = Table.grid(padding=(0, 1))
            remedy.add_row("→", escape(finding.remedy))
            table.add_row("", remedy)
    return Group(table, _conclusion(findings))


def _conclusion(findings: list[Finding]) -> str:
    if can_run(findings):
        return "The course can run here."
    remedies = any(f.remedy for f in findings if f.level == PROBLEM)
    advice = "Follow the arrows below ✗, from the top." if remedies else "The lines with ✗ say why."
    return f"[red]The course cannot run here yet.[/] {advice}"
