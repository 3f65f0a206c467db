"""What a check says: one verdict, with the cases behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

PASS = "pass"
NOT_ATTEMPTED = "not attempted"
FAIL = "fail"
ERROR = "error"
GRADER_FAULT = "grader fault"

EXIT_CODES = {PASS: 0, FAIL: 1, NOT_ATTEMPTED: 2, ERROR: 3, GRADER_FAULT: 4}


@dataclass(frozen=True)
class CaseResult:
    """One case. ``error`` is the largest error in units of the allowed one; None if the case gave no number
    (not run, NaN where a number belongs, bytes changed that must not be)."""

    name: str
    status: str  # "pass", "fail" or "not run"
    error: float | None
    detail: str  # what is special about the case, and for a failure where it shows first


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    ``cause`` is a stable identifier ("padding_in_variance"), ``message`` the sentences a learner reads, ``tier`` the
    isolation the kernel ran under, ``printed`` the end of what the kernel printed, ``hidden`` the fingerprint of the secret
    that its cases were drawn from; empty for the cases that every learner has.
    """

    exercise: str
    status: str
    cause: str
    message: str
    cases: tuple[CaseResult, ...] = ()
    mode: str = "cpu"
    tier: str = "none"
    seconds: float = 0.0
    printed: str = ""
    hidden: str = ""

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]

    @property
    def passed(self) -> bool:
        return self.status == PASS

    def timed(self, seconds: float) -> Verdict:
        return replace(self, seconds=round(seconds, 3))

    def as_dict(self) -> dict:
        """The form that ``--json`` prints and that the progress file keeps."""
        return {
            "exercise": self.exercise,
            "status": self.status,
            "cause": self.cause,
            "message": self.message,
            "cases": [{"name": c.name, "status": c.status, "error": _finite(c.error), "detail": c.detail} for c in self.cases],
            "mode": self.mode,
            "isolation": self.tier,
            "seconds": self.seconds,
            "printed": self.printed,
            "hidden": self.hidden,
        }

    def as_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def from_dict(data: dict) -> Verdict:
    """The verdict that :meth:`Verdict.as_dict` wrote.

    Raises: KeyError or TypeError if ``data`` is something else.
    """
    cases = tuple(CaseResult(c["name"], c["status"], c["error"], c["detail"]) for c in data["cases"])
    return Verdict(
        data["exercise"],
        data["status"],
        data["cause"],
        data["message"],
        cases,
        data["mode"],
        data["isolation"],
        data["seconds"],
        data["printed"],
        data.get("hidden", ""),  # verdicts of before there were hidden cases
    )


def _finite(error: float | None) -> float | None:
    return None if error is None or error != error or error in (float("inf"), float("-inf")) else float(f"{error:.4g}")
