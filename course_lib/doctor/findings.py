"""The doctor's findings, one for each thing examined, and their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.base.text import make_visible_line, wrap

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class DoctorFinding:
    """The result for one thing examined. ``remedy`` is empty if there is nothing to do."""

    name: str
    level: str  # OK; NOTE: the course runs nevertheless; PROBLEM: it does not
    what: str
    remedy: str = ""

    def __post_init__(self) -> None:
        for name, text in vars(self).items():  # a path or a package's message may hold terminal control characters
            object.__setattr__(self, name, make_visible_line(text))


def can_run(findings: Iterable[DoctorFinding]) -> bool:
    """Return True if no finding keeps the course from running."""
    return all(finding.level != PROBLEM for finding in findings)


def as_text(findings: Iterable[DoctorFinding], width: int = 110) -> str:
    """Return the findings as plain text, one paragraph each, with the remedy below."""
    marks = {OK: "ok     ", NOTE: "note   ", PROBLEM: "PROBLEM"}
    lines = []
    for finding in findings:
        lines += wrap(f"{finding.name}: {finding.what}", width, f"{marks[finding.level]}  ", " " * 9)
        if finding.remedy:
            lines += wrap(finding.remedy, width, " " * 9 + "-> ", " " * 12)
    return "\n".join(lines)
