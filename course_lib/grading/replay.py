"""A case of a check as plain data and arrays, and the run of a file on it. Nothing is drawn anew: a
case that was written down runs with the same bytes as long as its exercise has the same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.base.plain import decode, encode
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.exercises import find_parts
from course_lib.grading import warming
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.plan import Batch, Expected, Plan
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind
from course_lib.grading.running import Running, forget_unwritten
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Unreadable, read_text
from course_lib.sandbox.jobs import require_tier

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class _TensorData:
    """The fields of a :class:`Tensor` without its values."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    far: bool
    guard: int
    scratch: bool
    poison: int | None
    any_dtype: bool
    whole: bool
    in_place: bool


@dataclass(frozen=True)
class _PlanData:
    """The fields of a :class:`Plan` that are plain data."""

    entry_point: str
    grid: tuple[int, ...]
    tensors: tuple[_TensorData, ...]
    arguments: tuple[Any, ...]
    constexprs: dict[str, Any]
    num_warps: int
    interleavings: int
    resident: int
    any_order: bool
    reads: dict[str, int]
    reads_by_lane: bool
    spread: dict[str, int]
    calls: dict[str, tuple[int, int | None]]
    alike: tuple[str, ...]
    batch: Batch | None
    empty_loads: int | None
    meetings: int | None
    counted: bool
    sample: tuple[int, ...]
    kernel_under_test: str


@dataclass(frozen=True)
class _Manner:
    """How a result is compared with the expected one: the flags of :class:`Expected`."""

    signed: bool
    whole: bool


def describe_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain data for JSON, without its numbers."""
    return {
        "case": encode(type(plan.case), plan.case),
        "plan": encode(_PlanData, plan),
        "expected": {name: encode(_Manner, e) for name, e in plan.expected.items()},
    }


def read_inputs(plan: Plan) -> Arrays:
    """Return the inputs as the learner's code reads them. bf16, which NumPy does not know, becomes
    fp32, which holds the same values."""
    return {
        tensor.name: _widen(tensor.read(tensor.initial_bytes()), tensor.dtype)
        for tensor in plan.tensors
        if tensor.values is not None
    }


def _widen(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a row may hold a NaN on purpose
        return values.astype(np.float32) if dtype == "bf16" else values


def rebuild_plan(
    exercise: Exercise,
    described: Mapping[str, Any],
    inputs: Arrays,
    values: Arrays,
    allowed: Arrays,
) -> Plan[Any]:
    """Return the plan that :func:`describe_plan` described.

    Args:
        inputs: what :func:`read_inputs` returned.
        values: the right results by output, in float64.
        allowed: their allowed errors.

    Raises: ValueError, KeyError or TypeError if the data have another form.
    """
    data: _PlanData = decode(_PlanData, described["plan"])
    part = find_parts(exercise)[data.entry_point]
    case = decode(type(part.battery[0]), described["case"])
    tensors = tuple(Tensor(**vars(t), values=inputs.get(t.name)) for t in data.tensors)
    manners = {name: decode(_Manner, plain) for name, plain in described["expected"].items()}
    expected = {
        name: Expected(values[name], allowed[name], manner.signed, manner.whole)
        for name, manner in manners.items()
    }
    derive = None
    if expected.keys() - {tensor.name for tensor in tensors}:
        # which function derives results from the outputs depends on the shape of the case alone
        derive = part.planner(case, data.entry_point, np.random.default_rng(0)).derive
    rest = {name: value for name, value in vars(data).items() if name != "tensors"}
    return Plan(case, tensors=tensors, expected=expected, derive=derive, **rest)


def run_file(
    exercise: Exercise, file: Path, plan: Plan, wanted_mode: str, tier: str
) -> tuple[Judged | None, str]:
    """Run a file on one case, in ``tier`` or a better isolation.

    Returns: the judged case, or None if nothing was run; and why it did not finish, or "".

    Raises: EnvironmentFault if this machine cannot run it.
    """
    try:
        kernels = reader.read(exercise, read_text(file), file.name)
    except Unreadable as unreadable:
        return None, str(unreadable)
    if kernels is None:
        return None, _("{file} is still as the course wrote it.").format(file=file.name)
    mode = find_kind(exercise.kind).choose_mode(wanted_mode)
    warming.prepare(mode)
    with require_tier(tier):
        run, (judged,), _unchecked = Running(kernels, mode).judge_all([plan])
    forget_unwritten([judged])
    if run.import_error is not None:
        return None, f"{run.import_error.type}: {run.import_error.text}"
    return judged, "" if run.ended == "finished" else run.ended
