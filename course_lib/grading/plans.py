"""Makes cases concrete: the tensors, the launch that the course does, and what float64 says must come out.

The child gets plain data from here (tensors, grid, arguments) and has no code of any exercise in it. A family is one
function; ``PLANNERS`` says which exercise takes which battery.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from course_lib import reference
from course_lib.catalog import Exercise
from course_lib.grading import cases, tolerance
from course_lib.grading.buffers import Tensor, guard_for, rounded
from course_lib.grading.cases import Case

WORKED_EXAMPLE = np.array([[2, -1, 3, 0.5, -0.5, 1.5, -2, 1], [4, -3, 2.5, 1, -1.5, 0, -0.5, 2], [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5]])


@dataclass(frozen=True)
class Expected:
    """What an output must be, and how far it may be off, element by element, in float64.

    Where ``allowed`` is NaN, anything goes; where it is infinite, any value that is not finite does.
    """

    values: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class Plan:
    """A concrete case: ``arguments`` are ("tensor", name), ("int", value) or ("float", value), in the kernel's order."""

    case: Case
    kernel: str
    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[tuple[str, object], ...]
    constexprs: dict[str, int]
    expected: dict[str, Expected]
    num_warps: int = 4
    inputs: dict[str, np.ndarray] = field(default_factory=dict)  # float64, for the diagnosis

    def tensor(self, name: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == name)


def plans(exercise: Exercise, seed: int = 0) -> list[Plan]:
    """Every case of the exercise, concrete. The same seed gives the same bytes on every machine."""
    battery, planner = PLANNERS[exercise.id]
    return [
        planner(case, exercise.entry_points[0], np.random.Generator(np.random.PCG64([seed, zlib.crc32(case.name.encode())])))
        for case in battery
    ]


def _copy(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    x = rounded(rng.normal(size=case.N), case.dtype)
    tensors = (_vector("x", case, case.dtype, x), _vector("y", case, case.dtype, None))
    values = x.astype(np.float64)
    return Plan(
        case, kernel, (-(-case.N // case.block),), tensors, (("tensor", "x"), ("tensor", "y"), ("int", case.N)), {"BLOCK": case.block},
        {"y": Expected(values, _half_ulp(values, case.dtype))}, inputs={"x": values},
    )  # fmt: skip


def _layer_norm(case: Case, kernel: str, rng: np.random.Generator, resident: bool) -> Plan:
    w_dtype = case.w_dtype or case.dtype
    x, w, b = _matrix(case, rng), _weight(case.N, w_dtype, rng), rounded(rng.normal(size=case.N), w_dtype)
    tensors = (
        _place("x", case, x, spare=3), _place("y", case, None, spare=9),
        _vector("w", case, w_dtype, w), _vector("b", case, w_dtype, b),
        _statistic("mean", case), _statistic("rstd", case),
    )  # fmt: skip
    arguments = [("tensor", name) for name in ("x", "y", "w", "b", "mean", "rstd")]
    arguments += [("int", tensors[0].strides[0]), ("int", tensors[1].strides[0])]
    arguments += [("int", case.M)] * resident + [("int", case.N), ("float", case.eps)]
    with np.errstate(invalid="ignore"):
        want = reference.layer_norm(x, w, b, case.eps)
        w64, b64 = w.astype(np.float64), b.astype(np.float64)
        scale = 1 + np.abs(want.mean) * want.rstd
        x64 = x.astype(np.float64)
        expected = {
            "y": _expect(want.y, scale[:, None] * np.abs(w64) + np.abs(b64) + np.abs(want.y), case.dtype, infinite=case.fill == "inf row"),
            "mean": _expect(want.mean, np.abs(x64).mean(axis=1) + np.abs(want.mean), "fp32", free=case.has_bad_row),
            "rstd": _expect(want.rstd, scale * want.rstd, "fp32", free=case.has_bad_row),
        }
    return Plan(
        case, kernel, (-(-case.M // case.rows),), tensors, tuple(arguments), {"ROWS": case.rows, "BLOCK": case.block} if resident else {"BLOCK": case.block},
        expected, inputs={"x": x64, "w": w64, "b": b64},
    )  # fmt: skip


def _layer_norm_blocked(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    return _layer_norm(case, kernel, rng, resident=False)


def _layer_norm_resident(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    return _layer_norm(case, kernel, rng, resident=True)


def _rms_norm(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    w_dtype = case.w_dtype or case.dtype
    x, w = _matrix(case, rng), _weight(case.N, w_dtype, rng)
    tensors = (
        _place("x", case, x, spare=3), _place("y", case, None, spare=9),
        _vector("w", case, w_dtype, w), _statistic("rstd", case),
    )  # fmt: skip
    arguments = [("tensor", name) for name in ("x", "y", "w", "rstd")]
    arguments += [("int", tensors[0].strides[0]), ("int", tensors[1].strides[0]), ("int", case.N), ("float", case.eps)]
    return Plan(
        case, kernel, (case.M,), tensors, tuple(arguments), {"BLOCK": case.block}, _expected_rms(x, w, case),
        inputs={"x": x.astype(np.float64), "w": w.astype(np.float64)},
    )  # fmt: skip


def _add_rms_norm(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    w_dtype = case.w_dtype or case.dtype
    x, w = _matrix(case, rng), _weight(case.N, w_dtype, rng)
    residual = rounded(np.zeros(x.shape) if case.fill in ("constant", "worked") else case.std * rng.normal(size=x.shape), case.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = x.astype(np.float32) + residual.astype(np.float32)
    total = rounded(exact, case.dtype)
    tensors = (
        _place("x", case, x, spare=3), _place("residual", case, residual, spare=5),
        _place("total", case, None, spare=9), _place("y", case, None, spare=14),
        _vector("w", case, w_dtype, w), _statistic("rstd", case),
    )  # fmt: skip
    arguments = [("tensor", name) for name in ("x", "residual", "total", "y", "w", "rstd")]
    arguments += [("int", tensor.strides[0]) for tensor in tensors[:4]] + [("int", case.N), ("float", case.eps)]
    total64 = total.astype(np.float64)
    expected = {"total": Expected(total64, _half_ulp(total64, case.dtype)), **_expected_rms(total, w, case)}
    inputs = {"x": total64, "w": w.astype(np.float64), "first": x.astype(np.float64), "exact": exact.astype(np.float64)}
    return Plan(case, kernel, (case.M,), tensors, tuple(arguments), {"BLOCK": case.block}, expected, inputs=inputs)


def _expected_rms(x: np.ndarray, w: np.ndarray, case: Case) -> dict[str, Expected]:
    with np.errstate(invalid="ignore"):
        want = reference.rms_norm(x, w, case.eps)
        terms = np.abs(w.astype(np.float64)) + np.abs(want.y)
        return {"y": _expect(want.y, terms, case.dtype), "rstd": _expect(want.rstd, want.rstd, "fp32", free=case.has_bad_row)}


PLANNERS: dict[str, tuple[tuple[Case, ...], Callable[[Case, str, np.random.Generator], Plan]]] = {
    "00a": (cases.COPY, _copy),
    "06a": (cases.LAYER_NORM_BLOCKED, _layer_norm_blocked),
    "06b": (cases.LAYER_NORM_RESIDENT, _layer_norm_resident),
    "07a": (cases.RMS_NORM, _rms_norm),
    "07b": (cases.RMS_NORM, _add_rms_norm),
}


def _matrix(case: Case, rng: np.random.Generator) -> np.ndarray:
    """x of the case, rounded to its dtype."""
    if case.fill == "worked":
        return rounded(WORKED_EXAMPLE, case.dtype)
    if case.fill == "constant":
        return rounded(np.full((case.M, case.N), case.mean), case.dtype)
    x = case.mean + case.std * rng.normal(size=(case.M, case.N))
    if case.has_bad_row:
        x[1, case.N // 3] = np.nan if case.fill == "nan row" else np.inf
    return rounded(x, case.dtype)


def _weight(N: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Weights away from 0 and 1, so that one left out or applied twice shows everywhere."""
    return rounded(rng.uniform(0.5, 2.0, size=N) * rng.choice([-1.0, 1.0], size=N), dtype)


def _place(name: str, case: Case, values: np.ndarray | None, spare: int) -> Tensor:
    """An (M, N) tensor in the case's layout; ``spare`` columns of gap tell the strides of two tensors apart."""
    row = {"packed": case.N, "sliced": case.N + spare, "far": cases.FAR_STRIDE}[case.layout]
    far = case.layout == "far"
    return Tensor(name, case.dtype, (case.M, case.N), (row, 1), values, far, guard_for(case.block if far else case.rows * row + case.block))


def _vector(name: str, case: Case, dtype: str, values: np.ndarray | None) -> Tensor:
    return Tensor(name, dtype, (case.N,), (1,), values, guard=guard_for(case.block))


def _statistic(name: str, case: Case) -> Tensor:
    return Tensor(name, "fp32", (case.M,), (1,), guard=guard_for(case.rows))


def _expect(values: np.ndarray, terms: np.ndarray, dtype: str, free: bool = False, infinite: bool = False) -> Expected:
    """``free``: right algorithms, and right GPUs, differ in what the statistics of a row with a NaN or an Inf are; y tells.

    ``infinite``: they also differ in whether an Inf ends as Inf or as NaN, where the formula gives NaN.
    """
    allowed = tolerance.allowed(terms, values, dtype)
    if free:
        allowed[1] = np.nan
    else:
        allowed[np.isnan(allowed)] = np.inf if infinite else 0.0
    return Expected(values, allowed)


def _half_ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """For outputs that must be exact: any other value of the dtype is at least two of these away."""
    digits = {"fp32": 23, "fp16": 10, "bf16": 7}[dtype]
    smallest = {"fp32": -126, "fp16": -14, "bf16": -126}[dtype]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(values)))
    return 0.5 * 2.0 ** (np.where(np.isfinite(exponent), np.maximum(exponent, smallest), smallest) - digits)
