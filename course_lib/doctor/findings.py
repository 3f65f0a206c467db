"""What the doctor says: one finding for each thing it looked at, and the findings as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.base.text import make_visible_line, wrap

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class DoctorFinding:
    """One thing looked at. ``remedy`` is empty where there is nothing to do."""

    name: str
    level: str  # OK, NOTE: the course runs all the same, PROBLEM: it does not
    what: str
    remedy: str = ""

    def __post_init__(self) -> None:
        for name, text in vars(self).items():  # a path or a package's words may hold what a terminal obeys
            object.__setattr__(self, name, make_visible_line(text))


def can_run(findings: Iterable[DoctorFinding]) -> bool:
    """True when nothing found keeps the course from running."""
    return all(finding.level != PROBLEM for finding in findings)


def as_text(findings: Iterable[DoctorFinding], width: int = 110) -> str:
    """The findings as plain text, one paragraph each, the remedy beneath."""
    marks = {OK: "ok     ", NOTE: "note   ", PROBLEM: "PROBLEM"}
    lines = []
    for finding in findings:
        lines += wrap(f"{finding.name}: {finding.what}", width, f"{marks[finding.level]}  ", " " * 9)
        if finding.remedy:
            lines += wrap(finding.remedy, width, " " * 9 + "-> ", " " * 12)
    return "\n".join(lines)
