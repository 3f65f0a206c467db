"""Lesson 14: the losses of one training with two norms, their difference, and the step at which
they separate, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _

# in nats
LIMITS = tuple(float(f"{digit}e{exponent}") for exponent in range(-7, 0) for digit in (1, 3))


@dataclass(frozen=True)
class LossState:
    """The losses of the reference (``wanted``) and of another run, up to a step."""

    wanted: tuple[float, ...]
    losses: tuple[float, ...]
    limit: float

    @property
    def gaps(self) -> np.ndarray:
        """Return the absolute difference for each step that both runs have."""
        common_steps = min(len(self.wanted), len(self.losses))
        return np.abs(np.subtract(self.wanted[:common_steps], self.losses[:common_steps]))

    @property
    def parts(self) -> int | None:
        """Find the first step, from 0, at which the losses differ by more than ``limit`` or are not
        both finite."""
        apart = np.flatnonzero(~(self.gaps <= self.limit))
        return int(apart[0]) if apart.size else None


def model(runs: Mapping[str, Sequence[float]], run: str, until: int, limit: float) -> LossState:
    """Compare ``run`` with the first of ``runs`` over the first ``until`` steps.

    Raises: CourseError if there is no such run besides the first, or ``until`` or ``limit`` is too
    small.
    """
    names = list(runs)
    if not names or run not in names[1:]:
        words = _("loss_curves compares a run with {first!r}; there is no other run {run!r}.")
        raise CourseError(words.format(first=names[0] if names else _("a first one"), run=run))
    if until < 1 or limit <= 0:
        words = _(
            "loss_curves needs at least one step and a limit above 0; you asked for {until} steps"
            " and {limit}."
        )
        raise CourseError(words.format(until=until, limit=limit))
    return LossState(tuple(runs[names[0]][:until]), tuple(runs[run][:until]), limit)


def make_data(
    runs: Mapping[str, Sequence[float]], steps: int, baseline: float | None, show: str
) -> dict[str, Any]:
    """Return the data for ``picture.js``. Differences are computed here, from unrounded losses, so
    0 means equal bit for bit."""
    names = list(runs)
    return {
        "start": {"run": show, "step": 0, "limit": 1e-3, "smooth": False},
        "steps": steps, "baseline": baseline, "names": names, "limits": LIMITS,
        "losses": {name: list(runs[name]) for name in names},
        "gaps": {name: model(runs, name, steps, 1e-3).gaps.tolist() for name in names[1:]},
    }  # fmt: skip
