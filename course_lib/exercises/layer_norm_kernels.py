"""What the kernels of LayerNorm forward share: cases, plan and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import (
    draw_matrix,
    draw_shift,
    draw_weight,
    place_matrix,
    place_statistic,
    place_vector,
)
from course_lib.exercises.wrong_formulas import (
    PADDING,
    SAME_BLOCKS,
    STEPS,
    SWEEPS,
    WRONG_SCALES,
    WRONG_SHIFTS,
    WRONG_STEPS,
    WRONGLY_SAVED,
    add_up_columns,
    add_up_in_every_lane,
    add_up_largest_lane,
    apply_right,
    average_over_tile,
    inverse_root,
    list_divisor_models,
    list_dtype_models,
    list_eps_models,
    list_rounded_outputs,
    list_scaled_eps_models,
    list_sweep_models,
    repeat_first_row,
    square_deviation,
    square_lanes,
    square_what_is_not_0,
    sweep_twice,
    take_same_block,
    vary,
    vary_by_cause,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan
from course_lib.norms import reference

# One row per program. The cases are cheap in the interpreter, because M is small and N costs
# little.
BLOCKED_CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3"),
    make_case("one short block", 3, 7, 16),
    make_case("one column", 2, 1, 16, "N = 1: the variance is 0, so y is b", mean=0.0),
    make_case("one row", 1, 129, 128, "M = 1, one column in the second block"),
    make_case("many blocks", 2, 1000, 64),
    make_case("small spread", 3, 100, 128),
    make_case("tiny eps", 3, 96, 32),
    make_case("zeros", 4, 17, 8),
    make_case("constant row", 2, 20, 8),
    make_case("mean 1000", 2, 600, 512, "the mean is 1000 times the spread, 424 padded lanes"),
    make_case("mean 10000", 2, 255, 64),
    *list_far_out(3001, 512),
    make_case("fp16", 3, 129, 64),
    make_case("fp16, std 100", 2, 2500, 1024),
    make_case("fp16, mean 8", 2, 1025, 512),
    make_case("bf16", 3, 127, 128),
    make_case("fp32 weights", 2, 33, 16, "x in fp16, w and b in fp32"),
    make_case("fp32 out", 2, 33, 16),
    make_case("fp32 in", 2, 33, 16),
    make_case("many rows", 1200, 3, 16),
    make_case("16400 columns", 1, 16400, 256),
    make_case(
        "sliced", 4, 50, 16, "x and y are slices of wider matrices, so their row strides differ"
    ),
    make_case("a NaN row", 4, 19, 8),
    make_case("an Inf row", 4, 19, 8),
    make_case("far rows", 4, 17, 16),
    *list_far_out(3001, 4096, ", one block"),
)

# Several rows per program, each of them in one block.
TILED_CASES = (
    make_case("worked example", 3, 8, 8, "the 3 x 8 worked example, one row a program"),
    make_case("padded, mean 3", 5, 17, 32),
    make_case("two rows a program", 4, 16, 16, "no padding, two full tiles"),
    make_case("a row too many", 5, 12, 16),
    make_case("one row, many asked", 1, 30, 32),
    make_case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", rows=2, mean=0.0),
    make_case("many rows", 150, 20, 32, "10 programs of 16 rows, the last one partly filled",
        rows=16),
    make_case("many programs", 299, 3, 16),
    make_case("small spread", 3, 100, 128, rows=2),
    make_case("tiny eps", 3, 96, 128, rows=2),
    make_case("zeros", 4, 17, 32, rows=2),
    make_case("constant row", 2, 20, 32),
    make_case("mean 1000", 2, 768, 1024),
    make_case("mean 10000", 2, 255, 256, rows=2),
    make_case("fp16", 3, 129, 256, rows=2),
    make_case("fp16, std 100", 2, 2500, 4096),
    make_case("fp16, mean 8", 2, 1025, 2048),
    make_case("bf16", 3, 127, 128, rows=2),
    make_case("fp32 weights", 2, 33, 64, "x in fp16, w and b in fp32", rows=2),
    make_case("fp32 out", 2, 33, 64, rows=2),
    make_case("fp32 in", 2, 33, 64, rows=2),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("sliced", 5, 50, 64,
        "x and y are slices of wider matrices, so their row strides differ", rows=2),
    make_case("a NaN row", 4, 19, 32, rows=4),
    make_case("an Inf row", 4, 19, 32, rows=4),
    make_case("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4),
)  # fmt: skip


def make_plan(
    case: Case, kernel: str, rng: np.random.Generator, resident: bool, reads: int = 1
) -> Plan:
    x, w, b = draw_matrix(case, rng), draw_weight(case, rng), draw_shift(case, rng)
    tensors = (
        place_matrix("x", case, x, spare=3), place_matrix("y", case, None, spare=9),
        place_vector("w", case, w), place_vector("b", case, b),
        place_statistic("mean", case), place_statistic("rstd", case),
    )  # fmt: skip
    arguments = ["x", "y", "w", "b", "mean", "rstd"]
    arguments += [tensors[0].strides[0], tensors[1].strides[0]]
    arguments += [case.M] * resident + [case.N, case.eps]
    with np.errstate(invalid="ignore"):
        want = reference.layer_norm(x, w, b, case.eps)
        w64, b64 = w.astype(np.float64), b.astype(np.float64)
        scale = 1 + np.abs(want.mean) * want.rstd
        x64 = x.astype(np.float64)
        expected = {
            "y": make_expected(
                want.y,
                scale[:, None] * np.abs(w64) + np.abs(b64) + np.abs(want.y),
                case.dtype_of("y"),
                infinite=case.has_bad_row,
            ),
            "mean": make_expected(
                want.mean,
                np.abs(x64).mean(axis=1) + np.abs(want.mean),
                "fp32",
                infinite=case.has_bad_row,
            ),
            "rstd": make_expected(want.rstd, scale * want.rstd, "fp32", free_row=case.bad_row),
        }
    return Plan(
        case, kernel, (-(-case.M // case.rows),), tensors, tuple(arguments),
        {"ROWS": case.rows, "BLOCK": case.block} if resident else {"BLOCK": case.block},
        expected, inputs={"x": x64, "w": w64, "b": b64}, reads={"x": reads, "y": 0},
        spread=dict.fromkeys(("x", "y"), -(-case.M // case.rows)),
    )  # fmt: skip


def list_models() -> Iterator[tuple[str, Model]]:
    vary_formula = partial(vary, _compute_wrong)
    yield from vary_formula("padding_in_variance", padding=[True], step=STEPS)
    yield from vary_formula("unbiased_variance", var_divisor=["N-1", "N-1 or 1"])
    yield from list_eps_models(_compute_wrong)
    yield from list_scaled_eps_models(_compute_wrong)
    yield from list_divisor_models(_compute_wrong)
    yield from vary_by_cause(_compute_wrong, scale=(*WRONG_SCALES, *WRONG_SHIFTS))
    yield from vary_formula("zeros_left_out", measure=[square_what_is_not_0])
    measures = (square_deviation, square_what_is_not_0)
    yield from vary_formula(
        "zeros_left_out", mean_divisor=["N", "not 0"], var_divisor=["not 0"], measure=measures
    )
    yield from vary_formula("zeros_left_out", mean_divisor=["not 0"])
    yield "zeros_left_out", _leave_zeros_in_y
    yield from vary_formula("mean_not_subtracted", centre=[0.0])
    yield from vary_formula(
        "mean_not_subtracted", centre=[None, 0.0], measure=[lambda x, mean: x**2]
    )
    yield from vary_formula(
        "deviation_not_squared", measure=[lambda x, mean: np.abs(x - mean), lambda x, mean: 0 * x]
    )
    for sweeps, (cause, columns) in product(("both", "mean", "variance"), WRONG_STEPS):
        yield cause, partial(_compute_wrong, sweeps=sweeps, add=add_up_columns(columns))
    yield from vary_formula("mask_missing", other=PADDING, padding=[False, True])
    yield from list_sweep_models(_compute_wrong)
    yield "shift_left_in", _leave_first_out
    names = (("x",), ("w", "b"), ("w",), ("b",))
    yield from vary(_take_from_block, "another_block", names=names, block=SAME_BLOCKS)
    yield from vary_formula(
        "accumulator_reused", measure=[lambda x, mean: square_deviation(x, mean) + mean]
    )
    yield from vary_formula("max_for_sum", sweeps=SWEEPS, add=[add_up_largest_lane])
    yield from vary_formula("counted_by_every_lane", sweeps=SWEEPS, add=[add_up_in_every_lane])
    yield (
        "squared_after_the_sum",
        lambda p: _compute_wrong(p, measure=partial(square_lanes, p.case.block)),
    )
    others = ["M", "ROWS"]
    yield from vary_formula("divisor", mean_divisor=["N", *others], var_divisor=others)
    yield from vary_formula("divisor", mean_divisor=others)
    yield from vary(_misapply_shift, "b_misapplied", scale=_SCALES_OF_SHIFT)
    yield "rstd_not_applied", lambda p: _compute_wrong(p) | {"y": _apply_nothing(p)}
    yield from vary(_share_statistics, "statistics_of_another_row", tile=[True, False])
    yield from vary_formula(
        "wrong_axis", sweeps=SWEEPS, add=[average_over_tile(False), average_over_tile(True)]
    )
    yield from vary_formula(
        "w_misapplied",
        scale=[
            lambda hat, w, b: hat * _by_row(w, hat) + _by_row(b, hat),
            lambda hat, w, b: hat * w[0] + b,
            lambda hat, w, b: hat * w[0] + b[0],
        ],
    )
    yield from list_dtype_models(_compute_wrong, ("x", "w", "b"))
    yield from list_rounded_outputs(_compute_wrong, "y", ("x", "w", "b"))
    yield from vary_formula("wrong_statistic_saved", save=WRONGLY_SAVED)
    yield (
        "outputs_swapped",
        lambda p: dict(zip(("y", "rstd", "mean"), _compute_wrong(p).values(), strict=True)),
    )
    yield "same_row", lambda p: _compute_wrong(repeat_first_row(p, "x"))


def _leave_first_out(p: Plan) -> Outputs:
    """Return a mean of the distances from the first element of each row, and the rest right."""
    right = _compute_wrong(p)
    return right | {"mean": right["mean"] - p.inputs["x"][:, 0]}


def _take_from_block(p: Plan, names: tuple[str, ...], block: tuple[bool, float]) -> Outputs:
    """Return the outputs if the inputs ``names`` come from the same block of columns in every
    block, as :data:`SAME_BLOCKS` says."""
    taken = {name: take_same_block(p.case, p.inputs[name], *block) for name in names}
    x, w, b = (taken.get(name, p.inputs[name]) for name in ("x", "w", "b"))
    right = _compute_wrong(p)
    return right | {"y": apply_right((x - right["mean"][:, None]) * right["rstd"][:, None], w, b)}


def _by_row(w: np.ndarray, hat: np.ndarray) -> np.ndarray:
    return np.resize(w, len(hat))[:, None]


def _leave_zeros_in_y(p: Plan) -> Outputs:
    """Return the outputs if the deviation of an element that is 0 is taken as 0, in the variance
    and in y."""
    wrong = _compute_wrong(p, measure=square_what_is_not_0)
    return wrong | {"y": np.where(p.inputs["x"] == 0, p.inputs["b"], wrong["y"])}


# y if b is multiplied, too; arguments: the deviation, rstd, w and b
_SCALES_OF_SHIFT: tuple[Callable, ...] = (
    lambda deviation, rstd, w, b: (deviation * w + b) * rstd,
    lambda deviation, rstd, w, b: (deviation + b) * rstd * w,
    lambda deviation, rstd, w, b: deviation * (rstd * w + b),
)


def _misapply_shift(p: Plan, scale: Callable) -> Outputs:
    right, x = _compute_wrong(p), p.inputs["x"]
    deviation, rstd = x - right["mean"][:, None], right["rstd"][:, None]
    return right | {"y": scale(deviation, rstd, p.inputs["w"], p.inputs["b"])}


def _apply_nothing(p: Plan) -> np.ndarray:
    x = p.inputs["x"]
    return apply_right(x - x.mean(axis=1, keepdims=True), p.inputs["w"], p.inputs["b"])


def _share_statistics(p: Plan, tile: bool) -> Outputs:
    """Return the outputs with y by the statistics of the first row, of the program or of the
    matrix."""
    right, x = _compute_wrong(p), p.inputs["x"]
    rows = np.arange(len(x)) // p.case.rows * p.case.rows if tile else np.zeros(len(x), int)
    y = apply_right(
        (x - right["mean"][rows][:, None]) * right["rstd"][rows][:, None],
        p.inputs["w"],
        p.inputs["b"],
    )
    return right | {"y": y}


def _compute_wrong(
    p: Plan,
    *,
    x=None,
    eps=None,
    root=inverse_root,
    save=None,
    scale=apply_right,
    centre=None,
    **of_statistics,
) -> Outputs:
    """Return the outputs with other statistics (as ``sweep_twice``), or with something wrong behind
    them. ``centre``: what y subtracts."""
    x, eps = p.inputs["x"] if x is None else x, p.case.eps if eps is None else eps
    mean, var = sweep_twice(p, x=x, **of_statistics)
    rstd = root(var, eps)
    y = scale((x - (mean if centre is None else centre)) * rstd, p.inputs["w"], p.inputs["b"])
    return {"y": y, "mean": mean[:, 0], "rstd": (rstd if save is None else save(var, eps))[:, 0]}
