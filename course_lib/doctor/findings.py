"""The doctor's findings, one for each thing examined, and their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.base.text import make_visible_line, wrap

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class DoctorFinding:
    """The result for one thing examined: something to do, with its remedy, or a fact that a report
    of a fault needs (OK, without a remedy)."""

    name: str
    level: str  # OK; NOTE: the course runs nevertheless; PROBLEM: it does not
    what: str
    remedy: str = ""
    # of a fact: what a report of a fault, or somebody else than a learner, needs besides
    detail: str = ""

    def __post_init__(self) -> None:
        # a path or a package's message may hold terminal control characters
        for name, text in vars(self).items():
            object.__setattr__(self, name, make_visible_line(text))


def can_run(findings: Iterable[DoctorFinding]) -> bool:
    """Return True if no finding keeps the course from running."""
    return all(finding.level != PROBLEM for finding in findings)


def as_text(findings: Iterable[DoctorFinding], width: int = 110, details: bool = False) -> str:
    """Return what there is to do, one paragraph per finding with its remedy after an arrow below,
    then all facts in one, and the conclusion.

    With ``details`` each fact has a paragraph of its own, with its name and its detail. A command
    or a path that is longer than ``width`` stays whole, so that it can be copied.
    """
    findings = list(findings)
    marks = {NOTE: "! ", PROBLEM: "✗ "}
    lines = []
    for finding in findings:
        if finding.level != OK:
            lines += wrap(f"{finding.name}: {finding.what}", width, marks[finding.level], "  ")
            lines += wrap(finding.remedy, width, "  → ", " " * 4)
    facts = [finding for finding in findings if finding.level == OK]
    if details:
        paragraphs = [
            "; ".join(filter(None, (f"{fact.name}: {fact.what}", fact.detail))) for fact in facts
        ]
    else:
        paragraphs = ["; ".join(fact.what for fact in facts)]
    for paragraph in paragraphs:
        lines += wrap(paragraph, width, "  ", "  ")
    conclusion = (
        "The course can run here."
        if can_run(findings)
        else "The course cannot run here yet. Follow the arrows below ✗, from the top."
    )
    return "\n".join([*lines, *wrap(conclusion, width, "", "")])
