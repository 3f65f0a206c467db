"""The doctor's findings, one for each thing examined, and their text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.base.text import make_visible_line, wrap
from course_lib.base.translation import gettext as _

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


def split_message(message: str) -> tuple[str, str]:
    """Split an error's message into its first sentence, which is the problem, and the others, which
    are the remedy."""
    problem, *remedy = re.split(r"\. |。", message, maxsplit=1)
    return problem, "".join(remedy)


def _name(finding: DoctorFinding) -> str:
    return _("{name}: {what}").format(name=finding.name, what=finding.what)


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
            lines += wrap(_name(finding), width, marks[finding.level], "  ")
            lines += wrap(finding.remedy, width, "  → ", " " * 4)
    facts = [finding for finding in findings if finding.level == OK]
    if details:
        paragraphs = [_("; ").join(filter(None, (_name(fact), fact.detail))) for fact in facts]
    else:
        paragraphs = [_("; ").join(fact.what for fact in facts)]
    for paragraph in paragraphs:
        lines += wrap(paragraph, width, "  ", "  ")
    conclusion = (
        _("The course can run here.")
        if can_run(findings)
        else _("The course cannot run here yet. Follow the arrows below ✗, from the top.")
    )
    return "\n".join([*lines, *wrap(conclusion, width, "", "")])
