"""What the families make their plans of: inputs, tensors in a layout, expected values, and pieces of wrong formulas."""

from __future__ import annotations

import numpy as np

from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import FAR_STRIDE, Case
from course_lib.grading.cases.plan import Expected, Plan
from course_lib.grading.judging import tolerance

WORKED_EXAMPLE = np.array(
    [[2, -1, 3, 0.5, -0.5, 1.5, -2, 1], [4, -3, 2.5, 1, -1.5, 0, -0.5, 2], [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5]]
)


def draw_matrix(case: Case, rng: np.random.Generator) -> np.ndarray:
    """x of the case, rounded to its dtype."""
    if case.fill == "worked":
        return round_to(WORKED_EXAMPLE, case.dtype)
    if case.fill == "constant":
        return round_to(np.full((case.M, case.N), case.mean), case.dtype)
    x = case.mean + case.std * rng.normal(size=(case.M, case.N))
    if case.has_bad_row:
        x[1, case.N // 3] = np.nan if case.fill == "nan row" else np.inf
    return round_to(x, case.dtype)


def draw_weight(N: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Weights away from 0 and 1, so that one left out or applied twice shows everywhere."""
    return round_to(rng.uniform(0.5, 2.0, size=N) * rng.choice([-1.0, 1.0], size=N), dtype)


def place_matrix(name: str, case: Case, values: np.ndarray | None, spare: int) -> Tensor:
    """An (M, N) tensor in the case's layout; ``spare`` columns of gap tell the strides of two tensors apart."""
    row = {"packed": case.N, "sliced": case.N + spare, "far": FAR_STRIDE}[case.layout]
    far = case.layout == "far"
    return Tensor(
        name,
        case.dtype,
        (case.M, case.N),
        (row, 1),
        values,
        far,
        size_guard(case.block if far else case.rows * row + case.block),
    )


def place_vector(name: str, case: Case, dtype: str, values: np.ndarray | None) -> Tensor:
    return Tensor(name, dtype, (case.N,), (1,), values, guard=size_guard(case.block))


def place_statistic(name: str, case: Case) -> Tensor:
    return Tensor(name, "fp32", (case.M,), (1,), guard=size_guard(case.rows))


def make_expected(
    values: np.ndarray, terms: np.ndarray, dtype: str, free: bool = False, infinite: bool = False
) -> Expected:
    """``free``: right algorithms, and right GPUs, differ in what the statistics of a row with a NaN or an Inf are; y tells.

    ``infinite``: they also differ in whether an Inf ends as Inf or as NaN, where the formula gives NaN.
    """
    allowed = tolerance.bound_error(terms, values, dtype)
    if free:
        allowed[1] = np.nan
    else:
        allowed[np.isnan(allowed)] = np.inf if infinite else 0.0
    return Expected(values, allowed)


def half_ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """For outputs that must be exact: any other value of the dtype is at least two of these away."""
    digits = {"fp32": 23, "fp16": 10, "bf16": 7}[dtype]
    smallest = {"fp32": -126, "fp16": -14, "bf16": -126}[dtype]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(values)))
    return 0.5 * 2.0 ** (np.where(np.isfinite(exponent), np.maximum(exponent, smallest), smallest) - digits)


def inverse_root(v, eps):
    return 1 / np.sqrt(v + eps)


def find_divisor(p: Plan, which: str) -> float:
    N, block = p.case.N, p.case.block
    return np.float64({"N": N, "N-1": N - 1, "BLOCK": block, "lanes": N + p.case.padded_lanes, "1": 1}[which])
