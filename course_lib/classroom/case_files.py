"""The files of one case: its inputs, the expected and the returned results, and what is needed to
run it again.

Numbers lie in ``.npz`` files, which NumPy reads without running code; all else is JSON. bf16, which
``.npz`` does not know, is written as fp32, which holds the same values.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from course_lib import catalog
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.plain import decode, encode
from course_lib.classroom.checking import grader_version
from course_lib.classroom.out_folder import open_replacement, write_lines
from course_lib.exercises import find_parts
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.plan import Expected, Plan
from course_lib.grading.judging import wording
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind
from course_lib.grading.running import Running, forget_unwritten
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Unreadable, read_text
from course_lib.sandbox.jobs import require_tier

CASE, SCRIPT = "case.json", "run_case.py"
INPUTS, EXPECTED, ALLOWED, GOT = "inputs.npz", "expected.npz", "allowed.npz", "got.npz"
_SCRIPT = '''\
"""Run the case of this folder on the file beside this script, or on another one:

    python run_case.py [FILE]

It needs the Python of the course. The file runs as confined as it did when it was marked.
"""

import sys
from pathlib import Path

from course_lib.classroom.case_files import run_case

sys.exit(run_case(Path(__file__).parent, *map(Path, sys.argv[1:])))
'''


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
    empty_loads: int | None
    sample: tuple[int, ...]
    kernel_under_test: str


@dataclass(frozen=True)
class _Manner:
    """How a result is compared with the expected one: the flags of :class:`Expected`."""

    signed: bool
    whole: bool


def write_case(folder: Path, exercise: catalog.Exercise, judged: Judged, tier: str) -> list[str]:
    """Write the files of a case that was run in ``tier``, and return their names. ``got.npz`` is
    missing if the case did not finish.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    plan = judged.plan
    _write_arrays(folder / INPUTS, _read_inputs(plan))
    _write_arrays(folder / EXPECTED, {n: e.values for n, e in plan.expected.items()})
    _write_arrays(folder / ALLOWED, {n: e.allowed for n, e in plan.expected.items()})
    if judged.outputs:
        _write_arrays(folder / GOT, judged.outputs)
    content = {
        "exercise": exercise.id,
        "grader": grader_version(),
        "tier": tier,
        "words": plan.case.describe(),
        "case": encode(type(plan.case), plan.case),
        "plan": encode(_PlanData, plan),
        "expected": {name: encode(_Manner, e) for name, e in plan.expected.items()},
    }
    write_lines(folder / CASE, [json.dumps(content, indent=1) + "\n"])
    write_lines(folder / SCRIPT, [_SCRIPT])
    return [CASE, INPUTS, EXPECTED, ALLOWED, *([GOT] if judged.outputs else []), SCRIPT]


def remove_case(folder: Path) -> None:
    """Remove the files that :func:`write_case` wrote into a folder before."""
    for name in (CASE, INPUTS, EXPECTED, ALLOWED, GOT, SCRIPT):
        (folder / name).unlink(missing_ok=True)


def _read_inputs(plan: Plan) -> dict[str, np.ndarray]:
    """Return the inputs as the learner's code reads them."""
    return {
        tensor.name: _widen(tensor.read(tensor.initial_bytes()), tensor.dtype)
        for tensor in plan.tensors
        if tensor.values is not None
    }


def _widen(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a row may hold a NaN on purpose
        return values.astype(np.float32) if dtype == "bf16" else values


def _write_arrays(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    packed = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
    np.savez_compressed(packed, **named)
    with open_replacement(file) as out:
        out.write(packed.getvalue())


def _read_arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def read_case(folder: Path) -> tuple[dict[str, Any], Plan]:
    """Return the content of ``case.json`` and the plan that :func:`write_case` wrote.

    Raises: CourseError if the files are damaged, or of a version of the course whose cases have
    another form.
    """
    try:
        content = json.loads((folder / CASE).read_text(encoding="utf-8"))
        data: _PlanData = decode(_PlanData, content["plan"])
        part = find_parts(catalog.get(content["exercise"]))[data.entry_point]
        case = decode(type(part.battery[0]), content["case"])
        inputs = _read_arrays(folder / INPUTS)
        values, allowed = _read_arrays(folder / EXPECTED), _read_arrays(folder / ALLOWED)
        manners = {name: decode(_Manner, m) for name, m in content["expected"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CourseError(
            f"the case in {paths.shown(folder)} cannot be read ({error}): a file is missing or was"
            " changed, or the course has another version. `course grade OUT --show LEARNER"
            " EXERCISE` writes it anew."
        ) from None
    tensors = tuple(Tensor(**vars(t), values=inputs.get(t.name)) for t in data.tensors)
    expected = {
        name: Expected(values[name], allowed[name], manner.signed, manner.whole)
        for name, manner in manners.items()
    }
    derive = None
    if expected.keys() - {tensor.name for tensor in tensors}:
        # which function derives results from the outputs depends on the shape of the case alone
        derive = part.planner(case, data.entry_point, np.random.default_rng(0)).derive
    rest = {name: value for name, value in vars(data).items() if name != "tensors"}
    plan: Plan[Any] = Plan(case, tensors=tensors, expected=expected, derive=derive, **rest)
    return content, plan


def run_case(folder: Path, file: Path | None = None) -> int:
    """Run the case in ``folder`` on a file and print what comes out; return 0 if it is right, 1 if
    it is wrong, 3 if it cannot be run.

    Args:
        folder: the folder that :func:`write_case` wrote.
        file: the file to run; None takes the file of the exercise in ``folder``.
    """
    try:
        content, plan = read_case(folder)
        exercise = catalog.get(content["exercise"])
        file = file or folder / f"{exercise.file}.py"
        kernels = reader.read(exercise, read_text(file), file.name)
        if kernels is None:
            raise CourseError(f"{paths.shown(file)} is as the course wrote it: nothing to run.")
        mode = find_kind(exercise.kind).choose_mode(runtime.current().mode)
        with require_tier(content["tier"]):
            run, (judged,), _unchecked = Running(kernels, mode).judge_all([plan])
    except (CourseError, EnvironmentFault, Unreadable) as error:
        print(f"course: {error}", file=sys.stderr)
        return 3
    forget_unwritten([judged])
    print("\n".join([f"{exercise.id}, {content['words']}", *_describe_result(judged, run.ended)]))
    if run.import_error is not None:
        print(f"  {run.import_error.type}: {run.import_error.text}")
    if content["grader"] != grader_version():
        print("The course has another version than the one that wrote this folder.")
    return 0 if judged.passed else 1


def _describe_result(judged: Judged, ended: str) -> list[str]:
    if judged.passed:
        return ["  right"]
    if judged.raised:
        line = f"line {judged.raised.line}: " if judged.raised.line else ""
        return [f"  {line}{judged.raised.type}: {judged.raised.text}"]
    if not judged.ran:
        return [f"  it did not finish: {ended}"]
    return [f"  {wording.describe_finding(judged).words}"]
