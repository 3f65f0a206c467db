"""Lesson 10: losses of the same training with two norms, their difference on an axis of its own, and where they part: what is shown, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.base.errors import CourseError

LIMITS = {"1e-6: a few fp32 roundings": 1e-6, "1e-4": 1e-4, "0.001: a hair on the axis": 1e-3, "0.01": 1e-2}


@dataclass(frozen=True)
class LossState:
    """The reference's and another run's losses up to a step, and what they say about each other."""

    reference: str
    run: str
    wanted: tuple[float, ...]
    losses: tuple[float, ...]
    limit: float
    baseline: float | None
    number: int  # of the run among those compared: its colour and line

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


def model(
    runs: Mapping[str, Sequence[float]], run: str, until: int, limit: float, baseline: float | None = None
) -> LossState:
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
    return LossState(
        names[0], run, tuple(runs[names[0]][:until]), tuple(runs[run][:until]), limit, baseline, names.index(run) - 1
    )


def title(state: LossState) -> str:
    if not len(state.gaps):
        return f"{state.reference}: waiting for {state.run}"
    if not state.gaps.any():
        return f"Every loss is equal, bit for bit, over {_steps(len(state.gaps))}"
    if state.parts is None:
        return f"Never further apart than {_number(state.gaps.max())} nats"
    return f"Further apart than {state.limit:g} nats from step {state.parts} on"


def describe(state: LossState) -> str:
    """The caption."""
    gaps = state.gaps
    if not len(gaps):
        return f"{state.reference}, {_steps(len(state.wanted))}. No losses yet of {state.run}."
    words = [
        f"{state.run} against {state.reference}, {_steps(len(gaps))}: the losses go from {state.losses[0]:.3f} to {_end(state.losses):.3f} "
        f"and from {state.wanted[0]:.3f} to {_end(state.wanted):.3f} (mean of the last ten)."
    ]
    equal = int(np.argmax(gaps > 0)) if gaps.any() else len(gaps)
    words.append(f"Equal bit for bit in the first {_steps(equal)}." if equal else "They differ from the first step on.")
    if gaps.any():
        words.append(f"The largest difference is {_number(gaps.max())} nats, at step {int(np.nanargmax(gaps))}.")
        apart = f"from step {state.parts} on" if state.parts is not None else "never"
        words.append(f"Further apart than {state.limit:g}: {apart}.")
    if state.baseline is not None:
        below = "below" if _end(state.losses) < state.baseline else "not below"
        words.append(f"It ends {below} {state.baseline:.3f}, what counting single characters reaches.")
    return " ".join(words)


def _end(losses: Sequence[float]) -> float:
    return float(np.mean(losses[-10:]))


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"


def _number(value: float) -> str:
    return f"{value:.0e}" if value < 1e-2 else f"{value:.2f}"
