"""dx of LayerNorm from y (11c): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.dx_kernels import (
    LAYER_NORM_MISTAKES,
    RARE,
    compute_wrong_dx,
    share_saved,
    take_first_row,
)
from course_lib.exercises.gradients import (
    compute_hat,
    draw_backward_inputs,
    expect_dx,
    place_by_rows,
    save_statistics,
)
from course_lib.exercises.tensors import draw_shift, place_statistic, place_vector, widen_inputs
from course_lib.exercises.wrong_formulas import list_dtype_models, list_rounded_outputs
from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Part, Plan
from course_lib.norms import reference

# The mean of a case is that of b here.
CASES = (
    make_case("worked example", 3, 8, 8, "the 3 x 8 worked example, one row a program"),
    make_case("padded, mean 3", 5, 17, 32, "15 padded lanes, b around 3",
        "a padded lane divides 0 by 0"),
    make_case("zeros", 6, 16, 16, "three full tiles; every third column of y is 0",
        "an element that is 0 is taken for padding", rows=2, mean=1.0),
    make_case("a row too many", 5, 12, 16),
    make_case("two rows a program", 4, 16, 16),
    make_case("one row, many asked", 1, 30, 32),
    make_case("one column", 3, 1, 16, "N = 1", "c1 or c2 is divided by N - 1", rows=2),
    make_case("two columns", 4, 2, 16, rows=4),
    make_case("many rows", 150, 20, 32, "10 programs of 16 rows, the last one partly filled",
        rows=16),
    make_case("many programs", 299, 3, 16),
    make_case("long row", 2, 1000, 1024, "24 padded lanes", "c1 and c2 are divided by BLOCK",
        mean=3.0),
    make_case("large eps", 3, 100, 128, "std 0.03: eps = 0.1 rules rstd, and xhat is small",
        "xhat is taken to have the variance 1", rows=2, mean=0.5),
    make_case("constant row", 2, 20, 32, "y is b in every column, and rstd is 1 / sqrt(eps)",
        "b is left in y"),
    make_case("b around 100", 3, 48, 64, "b is around 100: most of y is b",
        "b is rounded, or taken out after the division", mean=100.0),
    make_case("tiny weights", 3, 48, 64,
        "every fourth element of w and b is small: from 1e-3 down to 1e-12",
        "a constant is added to w, or a small w is replaced", rows=2, fill="tiny weights"),
    make_case("fp16", 3, 129, 256, "half precision in and out", rows=2, mean=1.0),
    make_case("fp16, long row", 2, 2500, 4096),
    make_case("bf16", 3, 127, 128, rows=2),
    make_case("fp32 weights", 2, 33, 64, "y and dy in fp16, w and b in fp32",
        "b is rounded to the dtype of y", rows=2, mean=1.0),
    make_case("fp32 dx", 2, 33, 64, mistake="xhat is computed in half precision", rows=2,
        dtypes=(("dy", "bf16"), ("y", "fp16"), ("w", "fp16"), ("b", "fp16"))),
    make_case("fp32 dy", 2, 33, 64, mistake="dy is rounded to the dtype of y or w", rows=2,
        dtypes=(("y", "fp16"), ("w", "bf16"))),
    make_case("fp32 y", 2, 33, 64, "each tensor in a dtype of its own",
        "y is rounded to the dtype of dy or w", rows=2, mean=3.0,
        dtypes=(("dy", "bf16"), ("w", "fp16"))),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("far columns", 3, 4, 16, rows=2),
    make_case("sliced", 5, 50, 64, "dy, y and dx are slices of wider matrices: three row strides",
        "one row stride is taken for all three tensors", rows=2),
    make_case("expanded", 4, 50, 64,
        "dy is one number with strides (0, 0), as y.sum().backward() sends it"),
    make_case("transposed", 5, 36, 64, "dy is a transposed matrix: its columns are M apart",
        rows=2),
    make_case("a NaN row", 4, 19, 32, "row 0 of dy begins with NaN, which must stay in row 0",
        rows=4),
    make_case("an Inf row", 4, 19, 32, "dy holds an Inf in row 1: it must stay in row 1", rows=4),
    make_case("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4, mean=1.0),
)  # fmt: skip


def _plan_from_y(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    """Plan dx of the y that was stored. To the wrong formulas x is what xhat, recovered from y, is
    rstd times, and its mean is 0."""
    dy, x, w = draw_backward_inputs(
        replace(case, fill="normal") if case.fill == "zeros" else case, rng
    )
    b = draw_shift(case, rng, case.mean)
    if case.fill == "tiny weights":
        sizes = np.resize([1e-3, 1e-6, 1e-9, 2e-12], len(w[::4]))
        w[::4], b[::4] = w[::4] * sizes, b[::4] * sizes
    y = (
        by_hand.choose_rows(case.M, case.N)
        if case.by_hand
        else reference.layer_norm(x, w, b, case.eps).y
    )
    if case.fill == "zeros":
        y[:, ::3] = 0
    tensors = (
        place_by_rows("dy", case, dy), place_by_rows("y", case, round_to(y, case.dtype_of("y"))),
        place_vector("w", case, w),
        place_vector("b", case, b),
        place_statistic("rstd", case, save_statistics(x, case.eps)["rstd"]),
        place_by_rows("dx", case, None),
    )  # fmt: skip
    arguments = [
        *(tensor.name for tensor in tensors),
        *tensors[0].strides,
        tensors[1].strides[0],
        tensors[-1].strides[0],
        case.M,
        case.N,
    ]
    inputs = widen_inputs(tensors)
    inputs |= {
        "mean": np.zeros(case.M),
        "unsure": (np.abs(inputs["y"]) + np.abs(inputs["b"])) / np.abs(inputs["w"]),
    }
    programs = -(-case.M // case.rows)
    plan = Plan(
        case, kernel, (programs,), tensors, tuple(arguments),
        {"ROWS": case.rows, "BLOCK": case.block}, {}, inputs=inputs,
        spread=dict.fromkeys(("y", "dx"), programs),
    )  # fmt: skip
    plan = _recover(plan)
    return replace(plan, expected={"dx": expect_dx(case, plan.inputs, compute_wrong_dx(plan))})


def _recover(p: Plan, hat: Callable[..., np.ndarray] = lambda y, w, b, rstd: (y - b) / w) -> Plan:
    """Return the plan of 11c with this xhat, made of y, w, b and rstd."""
    rstd = p.inputs["rstd"][:, None]
    return replace(
        p, inputs=p.inputs | {"x": hat(p.inputs["y"], p.inputs["w"], p.inputs["b"], rstd) / rstd}
    )


def _list_from_y_models() -> Iterator[tuple[str, Model]]:
    for cause, hat in (
        ("b_left_in_y", lambda y, w, b, rstd: y / w),
        ("b_left_in_y", lambda y, w, b, rstd: y / w - b),
        ("b_left_in_y", lambda y, w, b, rstd: (y + b) / w),
        ("xhat_not_recovered", lambda y, w, b, rstd: y),
        ("xhat_not_recovered", lambda y, w, b, rstd: y - b),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - b) * w),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - b) / np.abs(w)),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - w) / b),
        ("xhat_not_recovered", lambda y, w, b, rstd: (b - y) / w),
        ("xhat_not_recovered", lambda y, w, b, rstd: y * rstd),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - b) * rstd),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - b) / w * rstd),
        ("xhat_not_recovered", lambda y, w, b, rstd: (y - b) / w / rstd),
        ("zeros_left_out", lambda y, w, b, rstd: np.where(y == 0, 0.0, (y - b) / w)),
    ):
        yield cause, lambda p, hat=hat: {"dx": compute_wrong_dx(_recover(p, hat))}
    yield (
        "b_left_in_y",
        lambda p: {
            "dx": (
                compute_wrong_dx(p, c1=0)
                - _scale_c1(p, (p.inputs["y"] * p.inputs["dy"]).mean(axis=1))
            )
        },
    )
    for cause, changes in LAYER_NORM_MISTAKES:
        yield cause, lambda p, changes=changes: {"dx": compute_wrong_dx(p, **changes)}
    yield "same_row", take_first_row
    for which in ("tile's first", "first", "first tile's", "program's"):
        yield (
            "statistics_of_another_row",
            lambda p, w=which: {"dx": compute_wrong_dx(_recover(share_saved(p, w, ("rstd",))))},
        )
    yield from list_dtype_models(
        lambda p: {"dx": compute_wrong_dx(_recover(p))}, ("y", "dy", "w", "b")
    )
    yield from list_rounded_outputs(
        lambda p: {"dx": compute_wrong_dx(p)}, "dx", ("dy", "y", "w", "b")
    )


def _scale_c1(p: Plan, c1: np.ndarray) -> np.ndarray:
    return compute_hat(p.inputs, "xhat") * (c1 * p.inputs["rstd"])[:, None]


PARTS = {
    "layer_norm_dx_from_y_kernel": Part(
        CASES,
        _plan_from_y,
        _list_from_y_models,
        rare=(*RARE, ("tiny_w_altered", lambda p, outputs: p.case.fill == "tiny weights")),
    )
}
