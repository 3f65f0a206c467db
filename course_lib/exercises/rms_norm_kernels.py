"""What the kernels of RMSNorm forward share, alone and with the residual added: cases, plans and
wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import half_ulp, make_expected
from course_lib.exercises.tensors import (
    draw_matrix,
    draw_weight,
    place_matrix,
    place_statistic,
    place_vector,
    round_values,
)
from course_lib.exercises.wrong_formulas import (
    PADDING,
    SAME_BLOCKS,
    WRONG_COLUMNS,
    WRONG_SCALES,
    WRONGLY_SAVED,
    add_up_lanes,
    apply_right,
    change_inputs,
    find_divisor,
    inverse_root,
    list_dtype_models,
    list_eps_models,
    list_rounded_outputs,
    list_scaled_eps_models,
    repeat_first_row,
    take_largest_lane,
    take_last_block,
    take_same_block,
    vary,
    vary_by_cause,
)
from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Plan
from course_lib.norms import reference

ONE_BLOCK_CASES = (
    make_case("worked example", 3, 8, 8),
    make_case("padded, mean 3", 5, 17, 32,
        mistake="the sum is divided by the lanes, or the mean is subtracted"),
    make_case("one column", 2, 1, 16, mistake="a mean is subtracted: y is 0", mean=0.0),
    make_case("one row", 1, 129, 256, "M = 1, 127 padded lanes", mean=0.0),
    make_case("long row", 2, 1000, 1024),
    make_case("near zero", 3, 100, 128, eps=1e-5),
    make_case("large eps", 3, 96, 128, "std 0.03, eps = 0.1"),
    make_case("tiny eps", 3, 96, 128),
    make_case("zeros", 4, 17, 32),
    make_case("zero row", 2, 20, 32, mean=0.0),
    make_case("fp16", 3, 129, 256),
    make_case("fp16, std 100", 2, 2500, 4096),
    make_case("fp16, mean 8", 2, 1025, 2048),
    make_case("bf16", 3, 127, 128),
    make_case("fp32 weights", 2, 33, 64, "x in fp16, w in fp32"),
    make_case("fp32 out", 2, 33, 64, dtypes=(("x", "bf16"), ("w", "fp16"))),
    make_case("fp32 in", 2, 33, 64, dtypes=(("y", "fp16"), ("w", "bf16"))),
    make_case("many rows", 1200, 3, 16),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("sliced", 4, 50, 64,
        "the matrices are slices of wider ones, so their row strides differ"),
    make_case("a NaN row", 4, 19, 32),
    make_case("an Inf row", 4, 19, 32,
        "row 1 holds an Inf: there y is NaN, and 0 in the rest of the row"),
    make_case("far rows", 4, 17, 32),
)  # fmt: skip


# A row may have more columns than BLOCK.
BLOCKED_CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3",
        "the sum is divided by the lanes, or the mean is subtracted"),
    make_case("one short block", 3, 7, 16),
    make_case("one full block", 3, 64, 64, mean=0.0),
    make_case("one column", 2, 1, 16, mistake="a mean is subtracted: y is 0", mean=0.0),
    make_case("one row", 1, 129, 128, "M = 1, one column in the second block", mean=0.0),
    make_case("many blocks", 2, 1000, 64),
    make_case("near zero", 3, 100, 32, eps=1e-5),
    make_case("large eps", 3, 96, 128, "std 0.03, eps = 0.1"),
    make_case("tiny eps", 3, 96, 32),
    make_case("zeros", 4, 17, 8),
    make_case("zero row", 2, 20, 8, mean=0.0),
    make_case("fp16", 3, 129, 64),
    make_case("fp16, std 100", 2, 2500, 1024),
    make_case("fp16, mean 8", 2, 1025, 512),
    make_case("bf16", 3, 127, 32),
    make_case("fp32 weights", 2, 33, 16, "x in fp16, w in fp32"),
    make_case("fp32 out", 2, 33, 16, dtypes=(("x", "bf16"), ("w", "fp16"))),
    make_case("fp32 in", 2, 33, 16, dtypes=(("y", "fp16"), ("w", "bf16"))),
    make_case("many rows", 1200, 20, 16),
    make_case("16400 columns", 1, 16400, 256),
    make_case("sliced", 4, 50, 16,
        "the matrices are slices of wider ones, so their row strides differ"),
    make_case("a NaN row", 4, 19, 8),
    make_case("an Inf row", 4, 19, 8,
        "row 1 holds an Inf: there y is NaN, and 0 in the rest of the row"),
    make_case("far rows", 4, 17, 8),
)  # fmt: skip


def plan_rms_norm(case: Case, kernel: str, rng: np.random.Generator, sweeps: int = 1) -> Plan:
    x, w = draw_matrix(case, rng), draw_weight(case, rng)
    tensors = (
        place_matrix("x", case, x, spare=3),
        place_matrix("y", case, None, spare=9),
        place_vector("w", case, w),
        place_statistic("rstd", case),
    )
    arguments = ["x", "y", "w", "rstd"]
    arguments += [tensors[0].strides[0], tensors[1].strides[0], case.N, case.eps]
    return Plan(
        case, kernel, (case.M,), tensors, tuple(arguments), {"BLOCK": case.block},
        _expect_rms_norm(x, w, case),
        inputs={"x": x.astype(np.float64), "w": w.astype(np.float64)}, reads={"x": sweeps, "y": 0},
        spread={"x": case.M, "y": case.M},
    )  # fmt: skip


def plan_add_rms_norm(
    case: Case, kernel: str, rng: np.random.Generator, in_place: bool = False
) -> Plan:
    """Plan 09a, or 09b with ``in_place``: there the residual lies where total is stored, and rows
    may be longer than BLOCK."""
    x, w = draw_matrix(case, rng), draw_weight(case, rng)
    residual = _draw_residual(case, rng, case.dtype_of("total" if in_place else "residual"))
    if case.by_hand:  # the norm is that of the sum
        x = round_to(x - residual, case.dtype_of("x"))
    with np.errstate(invalid="ignore", over="ignore"):
        exact = x.astype(np.float32) + residual.astype(np.float32)
    total_dtype = case.dtype_of("total")
    total = round_to(exact, total_dtype)
    of_total = place_matrix("total", case, residual if in_place else None, spare=9)
    matrices = (
        place_matrix("x", case, x, spare=3),
        *(() if in_place else (place_matrix("residual", case, residual, spare=5),)),
        replace(of_total, in_place=in_place), place_matrix("y", case, None, spare=14),
    )  # fmt: skip
    tensors = (*matrices, place_vector("w", case, w), place_statistic("rstd", case))
    arguments = [
        *(tensor.name for tensor in tensors),
        *(tensor.strides[0] for tensor in matrices),
        case.N,
        case.eps,
    ]
    total64 = total.astype(np.float64)
    expected = {
        "total": Expected(total64, half_ulp(total64, total_dtype)),
        **_expect_rms_norm(total, w, case),
    }
    inputs = {
        "x": total64, "w": w.astype(np.float64), "first": x.astype(np.float64),
        "residual": residual.astype(np.float64),
        "exact": exact.astype(np.float64),
    }  # fmt: skip
    return Plan(
        case, kernel, (case.M,), tensors, tuple(arguments), {"BLOCK": case.block}, expected,
        inputs=inputs,
        reads={"x": 2, "total": 2, "y": 0} if in_place else {"x": 1, "residual": 1, "total": 0,
            "y": 0},
        spread={"x": case.M, "y": case.M},
    )  # fmt: skip


def _draw_residual(case: Case, rng: np.random.Generator, dtype: str) -> np.ndarray:
    shape = (case.M, case.N)
    if case.fill in ("constant", "worked"):
        residual = np.zeros(shape)
    else:
        residual = (
            by_hand.choose_residual(*shape) if case.by_hand else case.std * rng.normal(size=shape)
        )
    return round_to(residual, dtype)


def _expect_rms_norm(x: np.ndarray, w: np.ndarray, case: Case) -> dict[str, Expected]:
    with np.errstate(invalid="ignore"):
        want = reference.rms_norm(x, w, case.eps)
        terms = np.abs(w.astype(np.float64)) + np.abs(want.y)
        return {
            "y": make_expected(want.y, terms, case.dtype_of("y")),
            "rstd": make_expected(want.rstd, want.rstd, "fp32", free_row=case.bad_row),
        }


def list_models() -> Iterator[tuple[str, Model]]:
    yield from list_eps_models(compute_wrong)
    # F.normalize divides by such a maximum
    for least in (lambda case: case.eps, lambda case: case.eps / np.sqrt(case.N)):
        yield (
            "eps_altered",
            lambda p, least=least: compute_wrong(
                p, root=lambda v, eps: 1 / np.maximum(np.sqrt(v), least(p.case))
            ),
        )
    yield from list_scaled_eps_models(compute_wrong)
    yield from vary(compute_wrong, "divisor", divisor=["BLOCK", "lanes", "1", "N^2"])
    yield from vary(compute_wrong, "unbiased_variance", divisor=["N-1", "N-1 or 1"])
    yield from vary(compute_wrong, "zeros_left_out", divisor=["not 0"])
    yield from vary_by_cause(compute_wrong, scale=WRONG_SCALES)
    yield "mean_subtracted", lambda p: compute_wrong(p, x=_centre(p.inputs["x"]))
    yield "mean_subtracted", lambda p: compute_wrong(p, measured=_centre(p.inputs["x"]))
    yield (
        "mean_subtracted",
        lambda p: compute_wrong(p, x=_centre(p.inputs["x"]), measured=p.inputs["x"]),
    )
    yield (
        "deviation_not_squared",
        lambda p: compute_wrong(p, measured=np.sqrt(np.abs(p.inputs["x"]))),
    )
    yield from vary_by_cause(_measure_columns, columns=WRONG_COLUMNS)
    yield from vary(compute_wrong, "mask_missing", other=PADDING)
    yield from vary(compute_wrong, "wrong_statistic_saved", save=WRONGLY_SAVED)
    yield "rstd_not_applied", lambda p: compute_wrong(p) | {"y": p.inputs["x"] * p.inputs["w"]}
    yield (
        "rstd_not_applied",
        lambda p: compute_wrong(p) | {"y": compute_wrong(p)["rstd"][:, None] * p.inputs["w"]},
    )
    yield "w_before_the_norm", lambda p: compute_wrong(p, measured=p.inputs["x"] * p.inputs["w"])
    yield "deviation_not_squared", lambda p: compute_wrong(p, measured=p.inputs["x"] ** 2)
    for divisor in ("N", "1"):
        yield (
            "max_for_sum",
            lambda p, divisor=divisor: compute_wrong(
                p, measured=np.abs(p.inputs["x"]).max(axis=1, keepdims=True), divisor=divisor
            ),
        )
    yield from vary(compute_wrong, "divisor", divisor=["M"])
    yield from vary(
        compute_wrong,
        "w_misapplied",
        scale=[
            lambda hat, w, b: hat * np.resize(w, len(hat))[:, None],
            lambda hat, w, b: hat * w[0],
        ],
    )
    yield "statistics_of_another_row", _take_first_rstd
    yield from list_dtype_models(compute_wrong, ("x", "w"))
    yield from list_rounded_outputs(compute_wrong, "y", ("x", "w", "total", "residual"))
    yield "same_row", lambda p: compute_wrong(repeat_first_row(p, "x"))


def list_blocked_models() -> Iterator[tuple[str, Model]]:
    yield "block_not_accumulated", partial(_measure_columns, columns=take_last_block)
    yield from list_models()
    for block in SAME_BLOCKS:
        names = (("x",), ("w",), ("x", "w"))
        yield from vary(_take_from_block, "another_block", names=names, block=[block])
    yield "another_dtype", _park_in_y
    yield (
        "max_for_sum",
        lambda p: compute_wrong(
            p, measured=np.sqrt(take_largest_lane(p.inputs["x"] ** 2, p.case.block))[:, None]
        ),
    )
    yield (
        "squared_after_the_sum",
        lambda p: compute_wrong(p, measured=add_up_lanes(p.inputs["x"], p.case.block)),
    )
    yield (
        "counted_by_every_lane",
        lambda p: compute_wrong(p, measured=p.inputs["x"] * np.sqrt(p.case.block)),
    )


def _park_in_y(p: Plan) -> Outputs:
    """Return the outputs if the first sweep stores x in y, and the second one reads it there."""
    right = compute_wrong(p)
    return right | {
        "y": (
            round_values(p.inputs["x"], p.tensor("y").dtype)
            * right["rstd"][:, None]
            * p.inputs["w"]
        )
    }


def _measure_columns(p: Plan, columns: Callable[[Case], slice | np.ndarray]) -> Outputs:
    return compute_wrong(p, measured=p.inputs["x"][:, columns(p.case)])


def _take_from_block(p: Plan, names: tuple[str, ...], block: tuple[bool, float]) -> Outputs:
    """Return the outputs with the inputs ``names`` of y from the same block of columns in every
    block, as :data:`SAME_BLOCKS` says."""
    right = compute_wrong(p)
    taken = p.inputs | {name: take_same_block(p.case, p.inputs[name], *block) for name in names}
    return right | {"y": taken["x"] * right["rstd"][:, None] * taken["w"]}


def list_total_models(others: tuple[str, ...]) -> Iterator[tuple[str, Model]]:
    """Yield mistakes with the sum; ``others`` are the tensors beside total and rstd."""
    yield "residual_ignored", lambda p: compute_wrong(p, x=p.inputs["first"])
    yield "residual_ignored", lambda p: _add_residual(p, 0)
    yield "unrounded_total", lambda p: compute_wrong(p, x=p.inputs["exact"])
    yield "unrounded_total", lambda p: compute_wrong(p, measured=p.inputs["exact"])
    yield (
        "unrounded_total",
        lambda p: compute_wrong(p, x=p.inputs["exact"], measured=p.inputs["x"]),
    )
    for which, again in product(others, (True, False)):
        yield (
            "another_dtype",
            lambda p, which=which, a=again: _round_total(p, p.tensor(which).dtype, a),
        )
    if "residual" in others:
        yield "low_precision", _add_in_half
    for name, other in product(("first", "residual"), (*others, "total")):
        yield (
            "another_dtype",
            lambda p, name=name, other=other: _round_summand(p, name, p.tensor(other).dtype),
        )
    yield "another_dtype", lambda p: _round_total(_round_both(p), p.tensor("x").dtype)
    yield "norm_before_addition", lambda p: compute_wrong(p, measured=p.inputs["first"])
    yield "norm_before_addition", lambda p: compute_wrong(p, measured=p.inputs["residual"])
    yield (
        "norm_before_addition",
        lambda p: compute_wrong(p, x=p.inputs["first"], measured=p.inputs["x"]),
    )
    yield "norm_before_addition", lambda p: _add_afterwards(p)
    yield (
        "norm_before_addition",
        lambda p: compute_wrong(p, measured=np.hypot(p.inputs["first"], p.inputs["residual"])),
    )
    for sign in (-1, 2):
        yield "residual_misapplied", lambda p, s=sign: _add_residual(p, s)
    yield "total_not_stored", lambda p: {"total": p.inputs["residual"], **compute_wrong(p)}
    yield "total_not_stored", lambda p: {"total": p.inputs["first"], **compute_wrong(p)}
    yield "total_not_stored", lambda p: {"total": compute_wrong(p)["y"], **compute_wrong(p)}


def _take_first_rstd(p: Plan) -> Outputs:
    right = compute_wrong(p)
    return right | {"y": p.inputs["x"] * right["rstd"][0] * p.inputs["w"]}


def _centre(x: np.ndarray) -> np.ndarray:
    return x - x.mean(axis=1, keepdims=True)


def _round_total(p: Plan, dtype: str, again: bool = True) -> Outputs:
    """Return the outputs with the sum rounded to ``dtype``, not to that of total; ``again``: for y
    it is rounded to total's dtype, too."""
    total = round_values(p.inputs["exact"], dtype)
    read = round_values(total, p.tensor("total").dtype) if again else total
    return {"total": total, **compute_wrong(p, x=read)}


def _add_in_half(p: Plan) -> Outputs:
    """Return the outputs if the sum is rounded to the dtype of the summands, or is fp32 where they
    have two."""
    dtype = p.tensor("x").dtype
    return _round_total(p, dtype if p.tensor("residual").dtype == dtype else "fp32")


def _round_summand(p: Plan, name: str, dtype: str) -> Outputs:
    rounded = p.inputs | {name: round_values(p.inputs[name], dtype)}
    return _add_residual(replace(p, inputs=rounded), 1)


def _round_both(p: Plan) -> Plan:
    """Return the plan in which the residual is rounded to x's dtype before it is added."""
    rounded = round_values(p.inputs["residual"], p.tensor("x").dtype)
    return change_inputs(p, exact=p.inputs["first"] + rounded)


def _add_afterwards(p: Plan) -> Outputs:
    alone = compute_wrong(p, x=p.inputs["first"])
    return {**alone, "y": alone["y"] + p.inputs["residual"]}


def _add_residual(p: Plan, times: float) -> Outputs:
    total = round_values(p.inputs["first"] + times * p.inputs["residual"], p.tensor("total").dtype)
    return {"total": total, **compute_wrong(p, x=total)}


def compute_wrong(
    p: Plan,
    *,
    x=None,
    measured=None,
    other=0.0,
    divisor="N",
    eps=None,
    root=inverse_root,
    save=None,
    scale=apply_right,
) -> Outputs:
    """Return wrong outputs. ``measured``: the matrix that is squared; ``other``: the number in
    lanes past the last column."""
    x, eps = p.inputs["x"] if x is None else x, p.case.eps if eps is None else eps
    squares = ((x if measured is None else measured) ** 2).sum(axis=1, keepdims=True)
    spare = np.full((len(x), p.case.padded_lanes), other)
    square = (squares + (spare**2).sum(axis=1, keepdims=True)) / find_divisor(p, divisor)
    rstd = root(square, eps)
    return {
        "y": scale(x * rstd, p.inputs["w"], 0.0),
        "rstd": (rstd if save is None else save(square, eps))[:, 0],
    }
