"""Find the wrong elements of an output, and the way in which each is wrong. Verdicts, evidence,
pictures and hunts all use it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from course_lib.grading.cases.plan import Expected


class Element(IntEnum):
    """The kinds of an output's elements. A verdict shows the wrong kind that comes first here."""

    RIGHT = 0
    UNWRITTEN = 1  # it holds the bits that it started with
    WRONG_KIND = 2  # NaN or Inf where a number belongs, or the other way round
    OFF = 3  # a number that is off by more than the allowed error
    WRONG_ZERO = 4  # 0 where -0 belongs, or the other way round


@dataclass(frozen=True)
class Elements:
    """The elements of one output.

    Attributes:
        kinds: the :class:`Element` of each.
        ratio: the error of each over the allowed one; 0 for an element that was never written, that
            is not finite or should not be, or for which any value is right.
    """

    kinds: np.ndarray
    ratio: np.ndarray

    @property
    def wrong(self) -> np.ndarray:
        return self.kinds != Element.RIGHT


def judge_elements(
    actual: np.ndarray, expected: Expected, unwritten: np.ndarray | bool = False
) -> Elements:
    """Judge ``actual`` element by element; ``unwritten`` is True for an element that was never
    stored."""
    want, allowed, unwritten = expected.values, expected.allowed, np.asarray(unwritten)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        off = np.abs(actual - want)
        ratio = off / allowed
    free, are_numbers = np.isnan(allowed), np.isfinite(actual) & np.isfinite(want)
    # If no error is allowed and none was made, the ratio would be 0 / 0.
    ratio = np.where(are_numbers & (off > 0) & ~free & ~unwritten, ratio, 0.0)
    are_same = (
        (actual == want)
        | (np.isnan(actual) & np.isnan(want))
        | (np.isposinf(allowed) & ~np.isfinite(actual))
    )
    other_sign = np.signbit(actual) != np.signbit(want)
    # The first condition that holds decides.
    kinds = {
        Element.UNWRITTEN: unwritten,
        Element.WRONG_ZERO: (actual == 0) & (want == 0) & other_sign & ~free & expected.signed,
        Element.RIGHT: are_same | free,
        Element.WRONG_KIND: ~are_numbers,
        Element.OFF: ratio > 1,
    }
    return Elements(np.select(list(kinds.values()), list(kinds), Element.RIGHT), ratio)
