"""Inputs of a case, drawn, and tensors in the case's layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from course_lib.exercises import by_hand
from course_lib.grading.cases.buffers import Tensor, compute_strides, round_to, size_guard
from course_lib.grading.cases.case import FAR_STRIDE, Case

WORKED_EXAMPLE = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)


# The columns that are far out in a row of N, by fill. A row of even length has two in the middle:
# hidden cases draw even and odd N, and either of the two may be the one that a wrong file
# subtracts.
_FAR_OUT: dict[str, Callable[[int], slice]] = {
    "first far out": lambda N: slice(1),
    "middle far out": lambda N: slice((N - 1) // 2, N // 2 + 1),
    "last far out": lambda N: slice(N - 1, N),
}


def draw_matrix(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Draw x of the case, rounded to its dtype."""
    dtype = case.dtype_of("x")
    if case.fill == "worked":
        return round_to(WORKED_EXAMPLE, dtype)
    if case.fill == "constant":
        return round_to(np.full((case.M, case.N), case.mean), dtype)
    shape = (case.M, case.N)
    x = (
        by_hand.choose_rows(*shape)
        if case.by_hand
        else case.mean + case.std * rng.normal(size=shape)
    )
    spoil_row(case, x)
    if case.fill == "zeros":
        x[:, ::3] = 0
    if case.fill in _FAR_OUT:
        x[:, _FAR_OUT[case.fill](case.N)] += 200 * case.std
    if case.fill == "large first":
        # a small square is about a third of the last bit of the sum of a lane's large ones, so it
        # is lost if it comes after them and counts if it comes before them
        x[:, -(-case.N // 4) :] /= 1500
    return round_to(x, dtype)


def spoil_row(case: Case, values: np.ndarray) -> None:
    """Put the NaN or the Inf of a case with a bad row into (M, columns) values.

    The NaN stand in the first two columns of row 0. There a kernel reads that takes the same
    element for all rows, or forgets the row stride. The Inf stands inside of row 1.
    """
    if case.fill == "nan row":
        values[0, :2] = np.nan
    elif case.fill == "inf row":
        values[1, values.shape[1] // 3] = np.inf


def draw_weight(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Draw w of the case, rounded to its dtype: away from 0 and 1, so that a w which is left out or
    applied twice shows everywhere.

    Only in the fill "zeros" every fourth element is 0.
    """
    N = case.N
    if case.plain:
        w = np.ones(N)
    elif case.by_hand:
        w = by_hand.choose_weights(N)
    else:
        w = rng.uniform(0.5, 2.0, size=N) * rng.choice([-1.0, 1.0], size=N)
    if case.fill == "zeros":
        w[1::4] = 0
        w[2:4] = w[0]  # so that columns 0, 2 and 3 can cancel each other exactly
    return round_to(w, case.dtype_of("w"))


def draw_shift(case: Case, rng: np.random.Generator, mean: float = 0.0) -> np.ndarray:
    """Draw b of the case, rounded to its dtype."""
    b = (
        np.zeros(case.N)
        if case.plain
        else by_hand.choose_shifts(case.N)
        if case.by_hand
        else rng.normal(mean, size=case.N)
    )
    return round_to(b, case.dtype_of("b"))


def choose_strides(layout: str, shape: tuple[int, ...], spare: int = 3) -> tuple[int, ...]:
    """Return the strides of a tensor, (..., N), in a layout. ``spare``: the columns between the
    rows of a sliced one."""
    N = shape[-1]
    return {
        "sliced": (N + spare, 1),
        "transposed": (1, shape[0]),
        "permuted": (N, shape[0] * N, 1),  # the first two of three dimensions have changed places
        "columns": (2 * N, 2),  # every other column of a matrix
        "expanded": (0,) * len(shape),
        "far": (FAR_STRIDE, 1),
        "far columns": (1, FAR_STRIDE),
    }.get(layout, compute_strides(shape))


def round_values(values: Any, dtype: str) -> np.ndarray:
    """Return the values rounded to ``dtype``, in float64."""
    return round_to(np.asarray(values, np.float64), dtype).astype(np.float64)


def place_matrix(name: str, case: Case, values: np.ndarray | None, spare: int) -> Tensor:
    """Place an (M, N) tensor in the case's layout. The gap of ``spare`` columns makes the strides
    of two tensors differ."""
    strides, far = choose_strides(case.layout, (case.M, case.N), spare), case.layout == "far"
    guard = size_guard(case.block if far else case.rows * strides[0] + case.block)
    return Tensor(name, case.dtype_of(name), (case.M, case.N), strides, values, far, guard)


def place_vector(name: str, case: Case, values: np.ndarray | None) -> Tensor:
    return Tensor(name, case.dtype_of(name), (case.N,), (1,), values, guard=size_guard(case.block))


def place_statistic(name: str, case: Case, values: np.ndarray | None = None) -> Tensor:
    return Tensor(name, "fp32", (case.M,), (1,), values, guard=size_guard(case.rows))


def widen_inputs(tensors: Iterable[Tensor]) -> dict[str, np.ndarray]:
    """Return the values of the inputs among the tensors, in float64."""
    return {
        tensor.name: tensor.values.astype(np.float64)
        for tensor in tensors
        if tensor.values is not None
    }
