"""The result of a check: one verdict, with its cases."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from course_lib.base.text import make_visible, make_visible_line, shorten
from course_lib.base.translation import gettext as _

PASS = "pass"
NOT_ATTEMPTED = "not attempted"
FAIL = "fail"
ERROR = "error"
GRADER_FAULT = "grader fault"

EXIT_CODES = {PASS: 0, FAIL: 1, NOT_ATTEMPTED: 2, ERROR: 3, GRADER_FAULT: 4}

PRINTED_CHARACTERS = 4000
# for the texts that may be longer than a sentence
_MOST_CHARACTERS = {"message": 3000, "printed": PRINTED_CHARACTERS, "words": 1000, "detail": 400}
_MOST_OF_OTHERS = 500
# the keys of Verdict.as_dict, in their order
_WRITTEN = (
    "exercise status cause message headline first place question common cases mode isolation"
    " seconds printed hidden oddities counts".split()
)
_WITH_LINES = ("message", "printed", "source")


class _Shown:
    """The base of all parts of a verdict: it makes the control characters of their texts visible,
    and cuts long texts.

    The texts may contain parts of a learner's file, and go to terminals, pages, programs and files.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, str):
                visible = make_visible(value) if name in _WITH_LINES else make_visible_line(value)
                object.__setattr__(
                    self, name, shorten(visible, _MOST_CHARACTERS.get(name, _MOST_OF_OTHERS))
                )


@dataclass(frozen=True)
class CaseResult(_Shown):
    """The result of one case.

    ``error`` is the largest error in units of the allowed one. It is None if the case gave no
    number: it was not run, a NaN stands where a number belongs, or bytes changed that must not
    change.
    """

    name: str
    status: str  # "pass", "fail" or "not run"
    error: float | None
    detail: str  # what is special about the case; for a failure also its first sign


@dataclass(frozen=True)
class Finding(_Shown):
    """The evidence of the first failing case.

    ``case`` is its shape and what is special about it; it is empty if the finding belongs to no
    case. ``words`` describe all that happened. If numbers are wrong, ``element`` names the first
    wrong one ("y[0, 0]"), ``got`` and ``want`` are the two values, and ``ratio`` is their
    difference over the allowed error. ``wrong`` of the output's ``size`` elements are wrong, by at
    most ``worst`` times the allowed error. ``ratio`` and ``worst`` are None for NaN and Inf.
    ``inputs`` has names and texts of the inputs if the case was made to be worked out by hand.
    """

    case: str
    words: str
    element: str = ""
    got: float | None = None
    want: float | None = None
    ratio: float | None = None
    wrong: int = 0
    size: int = 0
    worst: float | None = None
    inputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place(_Shown):
    """A line of the learner's file to which the evidence points.

    ``file`` is the path as :func:`course_lib.base.paths.shown` gives it, ``line`` counts from 1,
    ``source`` is the line without its end. ``start`` and ``end`` count characters of ``source``
    from 0; both are 0 if only the line is known. ``label`` is empty if the cause is in this line.
    If the error only becomes visible here, ``label`` says what the line does ("y is stored here").
    """

    file: str
    line: int
    source: str
    start: int = 0
    end: int = 0
    label: str = ""

    @property
    def lead(self) -> str:
        """The words before the line. They make clear that a line with a label need not contain the
        cause."""
        return _("The error shows here:") if self.label else ""

    def __post_init__(self) -> None:
        """Make the line visible and cut it if it is too long. Keep the marked part, and move the
        marks with it."""
        source, behind = make_visible(self.source), max(self.end - len(self.source), 0)
        start, end = (len(make_visible(self.source[:column])) for column in (self.start, self.end))
        left_out = max(start - _MOST_OF_OTHERS // 2, 0) if len(source) > _MOST_OF_OTHERS else 0
        source = source[left_out : left_out + _MOST_OF_OTHERS]
        end = max(min(end + behind - left_out, len(source) + behind), start - left_out)
        for name, value in (("source", source), ("start", start - left_out), ("end", end)):
            object.__setattr__(self, name, value)
        super().__post_init__()


@dataclass(frozen=True)
class Oddity(_Shown):
    """Something unusual in a line of a submission; ``line`` is 0 for the whole file.

    It is no fault, but an instructor may want to look at it. ``for_author`` is true if its author
    should know it, too: the file does not do what its author thinks.
    """

    line: int
    words: str
    for_author: bool = False


@dataclass(frozen=True)
class KernelCount(_Shown):
    """What the kernel does, counted: ``name`` and ``unit`` say what ("reads of x", "per element"),
    ``place`` for which shape.

    ``yours`` is None if it could not be counted, ``course`` belongs to the course's solution,
    ``least`` is the lowest possible one. ``limit`` is the most that the exercise allows; None if it
    sets no limit.
    """

    name: str
    unit: str
    yours: float | None
    course: float
    least: float
    limit: float | None
    place: str


@dataclass(frozen=True)
class Verdict(_Shown):
    """The outcome of a check.

    ``cause`` is a stable identifier ("padding_in_variance"). ``message`` is one paragraph with all
    that a learner reads. The next fields have the same in pieces, and are empty or None if there is
    nothing to say: ``headline`` is the cause in words, ``first`` the first failing case, ``place``
    the line that the evidence points to, ``question`` a question that leads to the remedy, and
    ``common`` says how many cases fail and what they share. ``tier`` is the isolation under which
    the kernel ran, ``printed`` the end of its printed output. ``hidden`` is the fingerprint of the
    secret that the cases were drawn from; it is empty for the cases that every learner has.
    ``oddities`` are unusual lines that an instructor may want to look at. ``counts`` say what the
    kernel does, if the exercise counts something; with hidden cases they are left out.
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
    headline: str = ""
    first: Finding | None = None
    place: Place | None = None
    question: str = ""
    common: str = ""
    oddities: tuple[Oddity, ...] = ()
    counts: tuple[KernelCount, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]

    @property
    def passed(self) -> bool:
        return self.status == PASS

    def count_right_parts(self, parts: Sequence[str]) -> int:
        """Count the ``parts`` of a submission of which every case is right.

        A part is graded by itself, as an entry point of the kind "tests" is. A case's name begins
        with the name of its part.
        """
        wrong = {case.name.partition(":")[0] for case in self.cases if case.status != "pass"}
        return sum(part not in wrong for part in parts) if self.cases else 0

    def timed(self, seconds: float) -> Verdict:
        return replace(self, seconds=round(seconds, 3))

    def as_dict(self) -> dict:
        """Return the verdict in the form that ``--json`` prints and that the progress file
        keeps."""
        finding = self.first and asdict(self.first) | {
            "got": _encode_number(self.first.got), "want": _encode_number(self.first.want),
            "ratio": _round_finite(self.first.ratio), "worst": _round_finite(self.first.worst),
            "inputs": dict(self.first.inputs),
        }  # fmt: skip
        values = vars(self) | {
            "first": finding,
            "place": self.place and asdict(self.place),
            "cases": [asdict(case) | {"error": _round_finite(case.error)} for case in self.cases],
            "isolation": self.tier,
            "oddities": [asdict(oddity) for oddity in self.oddities],
            "counts": [asdict(count) for count in self.counts],
        }
        return {name: values[name] for name in _WRITTEN}

    def as_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def from_dict(data: dict) -> Verdict:
    """Return the verdict that :meth:`Verdict.as_dict` wrote. Fields that older versions did not
    write may be missing.

    Raises: KeyError, TypeError or ValueError if ``data`` is something else.
    """
    cases = tuple(
        CaseResult(c["name"], c["status"], c["error"], c["detail"]) for c in data["cases"]
    )
    first, place = data.get("first"), data.get("place")
    if first is not None:
        numbers = {
            name: None if first[name] is None else float(first[name]) for name in ("got", "want")
        }
        first = Finding(**first | numbers | {"inputs": tuple(first.get("inputs", {}).items())})
    texts = {
        name: data[name] for name in ("exercise", "status", "cause", "message", "mode", "printed")
    }
    texts |= {name: data.get(name, "") for name in ("hidden", "headline", "question", "common")}
    texts["seconds"] = data.get("seconds", 0.0)  # a class's journal keeps no durations
    oddities = tuple(Oddity(**oddity) for oddity in data.get("oddities", ()))
    counts = tuple(KernelCount(**count) for count in data.get("counts", ()))
    place = None if place is None else Place(**place)
    return Verdict(
        **texts, cases=cases, tier=data["isolation"], first=first, place=place, oddities=oddities,
        counts=counts,
    )  # fmt: skip


def _round_finite(error: float | None) -> float | None:
    return float(f"{error:.4g}") if error is not None and math.isfinite(error) else None


def _encode_number(value: float | None) -> float | str | None:
    """Return the value in a form that JSON has: NaN and Inf become "nan" and "inf"."""
    return value if value is None or math.isfinite(value) else str(value)
