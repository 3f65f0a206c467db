"""The rule for late work: what a late day costs, the free days of a term, and the days after which
nothing counts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.base.words import format_count

_DAY = 86_400.0
_PARTS = {
    "percent": re.compile(r"(\d+(?:\.\d+)?)\s*%\s*(?:per|a)\s+day"),
    "free_days": re.compile(r"(\d+)\s+free\s+days?"),
    "last_day": re.compile(r"at\s+most\s+(\d+)\s+days?"),
    "grace_minutes": re.compile(r"(\d+)\s+minutes?(?:\s+of)?\s+grace"),
}
_GRAMMAR = N_(
    'Write parts with commas between them: "10 % per day", "3 free days" (in the whole term), "at'
    ' most 4 days" (later than that, no points), "15 minutes of grace". One part is enough; the'
    " deadline stands in the plan of the weeks or in --due."
)


@dataclass(frozen=True)
class LateRule:
    """The rule for late work.

    Attributes:
        percent: hundredths of an exercise's points that each late day costs.
        free_days: days of the whole term that cost nothing. A free day serves all exercises of one
            deadline.
        last_day: the last late day on which work counts; later work gets 0 points. None sets no
            limit.
        grace_minutes: work that is late by no more than this is not late.
    """

    percent: float = 0.0
    free_days: int = 0
    last_day: int | None = None
    grace_minutes: int = 0

    def __bool__(self) -> bool:
        """Whether lateness costs anything."""
        return self.percent > 0 or self.last_day is not None

    def describe(self) -> str:
        """Return the rule in the words that :func:`read_late_rule` reads."""
        parts = [f"{self.percent:g} % per day"] if self.percent else []
        if self.free_days:
            parts.append(format_count(self.free_days, "free day"))
        if self.last_day is not None:
            parts.append(f"at most {format_count(self.last_day, 'day')}")
        if self.grace_minutes:
            parts.append(f"{self.grace_minutes} minutes of grace")
        return ", ".join(parts) or "no points off for lateness"

    def count_days(self, time: float, due: float) -> int:
        """Return the late days of work that was handed in at ``time``, where a day that has begun
        counts. Both times are in seconds since 1970."""
        seconds = time - due
        return 0 if seconds <= 60 * self.grace_minutes else math.ceil(seconds / _DAY)

    def deduct(self, points: float, possible: float, days: int) -> Fraction:
        """Return what remains of ``points`` after ``days`` late days without the free ones."""
        if self.last_day is not None and days > self.last_day:
            return Fraction(0)
        off = Fraction(possible) * Fraction(self.percent) * days / 100
        return max(Fraction(points) - off, Fraction(0))


def read_late_rule(text: str) -> LateRule:
    """Return the rule that a text such as ``10 % per day, 3 free days`` stands for.

    Raises: CourseError, with the grammar, if it is no such text.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, value = _read_part(part.strip().lower())
        if name is None:
            not_a_rule = _("--late {text!r} is no rule: not {part!r}.")
            raise CourseError(
                join_sentences(not_a_rule.format(text=text, part=part.strip()), _(_GRAMMAR))
            )
        if name in values:
            raise CourseError(
                _("--late {text!r} says {part!r} and another such number.").format(
                    text=text, part=part.strip()
                )
            )
        values[name] = value
    if values.get("percent", 0) > 100:
        raise CourseError(_("--late {text!r}: a day costs 100 % at most.").format(text=text))
    if "free_days" in values and not values.keys() & {"percent", "last_day"}:
        without_price = _("--late {text!r}: without a price no day needs to be free.")
        raise CourseError(join_sentences(without_price.format(text=text), _(_GRAMMAR)))
    whole = {name: int(value) for name, value in values.items() if name != "percent"}
    return LateRule(values.get("percent", 0.0), **whole)


def _read_part(part: str) -> tuple[str | None, float]:
    for name, pattern in _PARTS.items():
        if match := pattern.fullmatch(part):
            return name, float(match[1])
    return None, 0.0


def spend_free_days(
    free_days: int, deadlines: Sequence[Sequence[str]], find_points: Callable[[str, int], float]
) -> dict[str, int]:
    """Spend the free days of a term so that the learner has the most points.

    Args:
        deadlines: the exercises of each deadline, the earliest first; a day that is spent on a
            deadline serves all of them.
        find_points: returns the points of an exercise that has so many free days.

    Returns: the days for each exercise. Of two ways with equal points the one that spends fewer
    days, and those at the earlier deadlines, is taken.
    """
    # by the number of days spent so far: the points, and the days of each deadline
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for exercises in deadlines:
        points = [
            sum(find_points(exercise, days) for exercise in exercises)
            for days in range(free_days + 1)
        ]
        ways: dict[int, tuple[float, tuple[int, ...]]] = {}
        for spent, (total, choice) in best.items():
            for days in range(free_days - spent + 1):
                way = (total + points[days], (*choice, days))
                if spent + days not in ways or way > ways[spent + days]:
                    ways[spent + days] = way
        best = ways
    choice = max(best.items(), key=lambda item: (item[1][0], -item[0]))[1][1]
    return {
        exercise: days
        for exercises, days in zip(deadlines, choice, strict=True)
        for exercise in exercises
    }
