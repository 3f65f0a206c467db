"""A verdict as a person reads it: plain pieces that the command line and the panels dress in their own way."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.catalog import Exercise
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Verdict

# a sign beside the word, so that colour is never alone in saying it
SIGNS = {PASS: "✓", FAIL: "✗", ERROR: "!", NOT_ATTEMPTED: "○", GRADER_FAULT: "?"}

_WHERE = {
    "gpu": "on the GPU",
    "cpu": "in the interpreter (CPU)",
    "torch": "in PyTorch (CPU)",
    "numpy": "in NumPy",
    "autograd": "in PyTorch's autograd (CPU)",
}


@dataclass(frozen=True)
class Report:
    """``headline`` names exercise, status and cases; ``text`` is the message; ``footer`` how it was run; ``debrief`` follows a pass."""

    headline: str
    text: str
    footer: str
    debrief: str


def report(verdict: Verdict, exercise: Exercise) -> Report:
    right = sum(case.status == "pass" for case in verdict.cases)
    kind = "hidden cases" if verdict.hidden else "cases"
    count = f", {right} of {len(verdict.cases)} {kind} right" if verdict.cases else ""
    where = _WHERE.get(verdict.mode, verdict.mode)
    ran = f"{where}, isolation: {verdict.tier}, " if verdict.cases else ""
    ran += f"hidden cases {verdict.hidden}, " if verdict.hidden else ""
    return Report(
        f"{SIGNS[verdict.status]} {exercise.id} {exercise.title}: {verdict.status}{count}",
        verdict.message,
        f"{ran}{verdict.seconds:.1f} s",
        exercise.debrief if verdict.status == PASS else "",
    )
