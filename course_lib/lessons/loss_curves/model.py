"""Lesson 14: losses of the same training with two norms, their difference, and where they part: what is shown, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError

LIMITS = tuple(float(f"{digit}e{exponent}") for exponent in range(-7, 0) for digit in (1, 3))  # nats


@dataclass(frozen=True)
class LossState:
    """The reference's and another run's losses up to a step."""

    wanted: tuple[float, ...]
    losses: tuple[float, ...]
    limit: float

    @property
    def gaps(self) -> np.ndarray:
        """|difference| for each step that both have."""
        both = min(len(self.wanted), len(self.losses))
        return np.abs(np.subtract(self.wanted[:both], self.losses[:both]))

    @property
    def parts(self) -> int | None:
        """The first step, from 0, at which they are further apart than ``limit``, or not both finite."""
        apart = np.flatnonzero(~(self.gaps <= self.limit))
        return int(apart[0]) if apart.size else None


def model(runs: Mapping[str, Sequence[float]], run: str, until: int, limit: float) -> LossState:
    """``run`` against the first of ``runs``, over the first ``until`` steps.

    Raises: CourseError if there is no such run, or nothing to compare it with.
    """
    names = list(runs)
    if not names or run not in names[1:]:
        raise CourseError(
            f"loss_curves compares a run with {names[0] if names else 'a first one'!r}; there is no other run {run!r}."
        )
    if until < 1 or limit <= 0:
        raise CourseError(
            f"loss_curves needs at least one step and a limit above 0; you asked for {until} steps and {limit}."
        )
    return LossState(tuple(runs[names[0]][:until]), tuple(runs[run][:until]), limit)


def make_data(runs: Mapping[str, Sequence[float]], steps: int, baseline: float | None, show: str) -> dict[str, Any]:
    """What ``picture.js`` needs. The differences are taken here, of all the digits: equal means bit for bit."""
    names = list(runs)
    return {
        "start": {"run": show, "step": 0, "limit": 1e-3, "smooth": False},
        "steps": steps, "baseline": baseline, "names": names, "limits": LIMITS,
        "losses": {name: list(runs[name]) for name in names},
        "gaps": {name: model(runs, name, steps, 1e-3).gaps.tolist() for name in names[1:]},
    }  # fmt: skip
