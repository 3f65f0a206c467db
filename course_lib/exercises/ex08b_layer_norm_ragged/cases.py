"""LayerNorm forward of rows with a length of their own each: the inputs that find its bugs, and its
wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.layer_norm_kernels import TILED_CASES
from course_lib.exercises.tensors import (
    draw_matrix,
    draw_shift,
    draw_weight,
    place_matrix,
    place_statistic,
    place_vector,
)
from course_lib.exercises.wrong_formulas import (
    WRONG_SCALES,
    WRONG_SHIFTS,
    WRONGLY_SAVED,
    apply_right,
    inverse_root,
    list_dtype_models,
    list_eps_models,
    list_rounded_outputs,
    repeat_first_row,
    vary,
    vary_by_cause,
)
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference

_OWN_OR_LEFT_OUT = ("worked example", "two rows a program", "8200 columns")
# x holds NaN from the end of each row on.
CASES = (
    make_case("worked example", 3, 8, 8, "rows of the 3 x 8 worked example, cut short"),
    make_case("two rows a program", 4, 16, 16, "two rows a program, each with a length of its own",
        "all rows of a tile end at one length", rows=2, mean=1.0),
    *(case for case in TILED_CASES if case.name not in _OWN_OR_LEFT_OUT),
)  # fmt: skip


def _draw_lengths(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Draw the length of each row, (M,), from 1 to N. One row at least has N columns; a row with a
    NaN or an Inf has them as well.

    In some cases the full row is not row 0: otherwise a kernel that takes the length of row 0 would
    do the same as one without a mask.
    """
    lengths = rng.integers(1, case.N + 1, size=case.M)
    lengths[rng.integers(case.M)] = case.N
    if case.by_hand or case.fill == "worked":
        lengths = np.maximum(case.N - np.arange(case.M)[::-1], 1)
    if case.has_bad_row:
        lengths[case.bad_row] = case.N
    return lengths.astype(np.int32)


def _plan(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    x, w, b = draw_matrix(case, rng), draw_weight(case, rng), draw_shift(case, rng)
    lengths = _draw_lengths(case, rng)
    in_row = np.arange(case.N) < lengths[:, None]
    tensors = (
        place_matrix("x", case, np.where(in_row, x, round_to(np.array(np.nan), case.dtype_of("x"))),
            spare=3),
        place_matrix("y", case, None, spare=9),
        place_vector("w", case, w), place_vector("b", case, b),
        Tensor("lengths", "int32", (case.M,), (1,), lengths, guard=size_guard(case.rows)),
        place_statistic("mean", case), place_statistic("rstd", case),
    )  # fmt: skip
    arguments = (
        *(t.name for t in tensors),
        tensors[0].strides[0],
        tensors[1].strides[0],
        case.M,
        case.N,
        case.eps,
    )
    inputs = {
        "x": np.where(in_row, x, np.nan).astype(np.float64),
        "w": w.astype(np.float64),
        "b": b.astype(np.float64),
        "lengths": lengths,
    }
    y, terms = np.zeros((case.M, case.N)), np.zeros((case.M, case.N))
    mean, rstd, size = (np.zeros(case.M) for _ in range(3))
    with np.errstate(invalid="ignore"):
        for row, length in enumerate(lengths):
            columns = slice(0, int(length))
            want = reference.layer_norm(x[row : row + 1, columns], w[columns], b[columns], case.eps)
            y[row, columns], mean[row], rstd[row] = want.y[0], want.mean[0], want.rstd[0]
            size[row] = np.abs(inputs["x"][row, columns]).mean() + abs(mean[row])
            scale = 1 + abs(mean[row]) * rstd[row]
            terms[row, columns] = (
                scale * np.abs(inputs["w"][columns])
                + np.abs(inputs["b"][columns])
                + np.abs(want.y[0])
            )
        expected = {
            "y": make_expected(y, terms, case.dtype_of("y"), infinite=case.fill == "inf row"),
            "mean": make_expected(mean, size, "fp32", free_row=case.bad_row),
            "rstd": make_expected(
                rstd, (1 + np.abs(mean) * rstd) * rstd, "fp32", free_row=case.bad_row
            ),
        }
    programs = -(-case.M // case.rows)
    return Plan(
        case, kernel, (programs,), tensors, arguments, {"ROWS": case.rows, "BLOCK": case.block},
        expected, inputs=inputs,
        reads={"x": 1, "y": 0}, spread=dict.fromkeys(("x", "y"), programs),
    )  # fmt: skip


# ---- wrong formulas


def _compute_wrong(
    p: Plan, *, mean_divisor: str = "length", var_divisor: str = "length", padding: str = "length",
    lengths: Callable[[Plan], np.ndarray] | None = None, eps: float | None = None,
    root: Callable = inverse_root,
    scale: Callable = apply_right, behind: str = "0", save: Callable | None = None,
) -> Outputs:  # fmt: skip
    """Return the outputs with something wrong in them.

    ``mean_divisor`` and ``var_divisor`` name what the sums are divided by. ``padding``: the lanes
    up to this number are in the variance. ``lengths``: the lengths that are used. ``behind``: what
    y holds past the end of a row: 0, b, or what the formula makes of a 0.
    """
    length = p.inputs["lengths"] if lengths is None else lengths(p)
    in_row = np.arange(p.case.N) < length[:, None]
    x = np.where(in_row, p.inputs["x"], 0.0)
    sizes = {
        "length": length, "length-1": length - 1, "length-1 or 1": np.maximum(length - 1, 1),
        "N": p.case.N + 0 * length,
        "BLOCK": p.case.block + 0 * length, "1": 1 + 0 * length,
        "not 0": np.maximum((x != 0).sum(axis=1), 1),
    }  # fmt: skip
    mean = x.sum(axis=1, keepdims=True) / sizes[mean_divisor][:, None]
    squares = (
        np.where(in_row, (x - mean) ** 2, 0.0).sum(axis=1, keepdims=True)
        + (sizes[padding] - length)[:, None] * mean**2
    )
    var = squares / sizes[var_divisor][:, None].astype(np.float64)
    eps = p.case.eps if eps is None else eps
    rstd = root(var, eps)
    w, b = p.inputs["w"], p.inputs["b"]
    y = scale((x - mean) * rstd, w, b)
    if behind != "formula":
        y = np.where(in_row, y, b if behind == "b" else 0.0)
    return {"y": y, "mean": mean[:, 0], "rstd": (rstd if save is None else save(var, eps))[:, 0]}


def _take_lengths_of_first_row(p: Plan) -> np.ndarray:
    return p.inputs["lengths"][np.arange(p.case.M) // p.case.rows * p.case.rows]


def _take_lengths_of_last_row(p: Plan) -> np.ndarray:
    return p.inputs["lengths"][
        np.minimum(np.arange(p.case.M) // p.case.rows * p.case.rows + p.case.rows, p.case.M) - 1
    ]


def _take_length_of_row_0(p: Plan) -> np.ndarray:
    return np.full(p.case.M, p.inputs["lengths"][0])


def _take_lengths_by_program(p: Plan) -> np.ndarray:
    return p.inputs["lengths"][np.arange(p.case.M) // p.case.rows]


def _take_longest(p: Plan) -> np.ndarray:
    tile = np.arange(p.case.M) // p.case.rows
    return np.array([p.inputs["lengths"][tile == program].max() for program in tile])


def _list_models() -> Iterator[tuple[str, Model]]:
    vary_formula = partial(vary, _compute_wrong)
    yield from vary_formula("not_0_past_the_end", behind=["b", "formula"])
    yield from vary_formula("mask_missing", lengths=[lambda p: np.full(p.case.M, p.case.N)])
    yield "mask_missing", _spoil_short_rows
    lengths = (
        _take_lengths_of_first_row,
        _take_lengths_of_last_row,
        _take_longest,
        _take_length_of_row_0,
        _take_lengths_by_program,
    )
    yield from vary_formula("length_of_another_row", lengths=lengths, behind=["0", "b"])
    yield from vary_formula("padding_in_variance", padding=["N", "BLOCK"], behind=["0", "formula"])
    yield from vary_formula(
        "divisor", mean_divisor=["length", "N", "BLOCK"], var_divisor=["N", "BLOCK"]
    )
    yield from vary_formula(
        "divisor", mean_divisor=["N", "BLOCK"], padding=["length", "N", "BLOCK"]
    )
    yield from vary_formula("not_divided", mean_divisor=["length", "1"], var_divisor=["1"])
    yield from vary_formula("unbiased_variance", var_divisor=["length-1", "length-1 or 1"])
    yield from vary_formula(
        "zeros_left_out", mean_divisor=["length", "not 0"], var_divisor=["not 0"]
    )
    yield from vary_formula("zeros_left_out", mean_divisor=["not 0"])
    yield from list_eps_models(_compute_wrong)
    yield from vary_by_cause(_compute_wrong, scale=(*WRONG_SCALES, *WRONG_SHIFTS))
    yield from vary_formula("wrong_statistic_saved", save=WRONGLY_SAVED)
    yield from list_dtype_models(_compute_wrong, ("x", "w", "b"))
    yield from list_rounded_outputs(_compute_wrong, "y", ("x", "w", "b"))
    yield "same_row", lambda p: _compute_wrong(repeat_first_row(p, "x", "lengths"))


def _spoil_short_rows(p: Plan) -> Outputs:
    """Return NaN for each row that is shorter than N: what stands past its end is in its sums,
    though only its own places are stored."""
    right, short = _compute_wrong(p), p.inputs["lengths"] < p.case.N
    in_row = np.arange(p.case.N) < p.inputs["lengths"][:, None]
    y = np.where(short[:, None] & in_row, np.nan, right["y"])
    return {"y": y, **{name: np.where(short, np.nan, right[name]) for name in ("mean", "rstd")}}


PARTS = {"layer_norm_ragged_kernel": Part(CASES, _plan, _list_models)}
