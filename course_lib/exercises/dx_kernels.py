"""What the kernels for dx share, and the functions for it: the plan and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from course_lib.exercises.gradients import (
    compute_hat,
    compute_saved_anew,
    draw_backward_inputs,
    expect_dx,
    list_misread_models,
    place_by_rows,
    save_statistics,
    take_mean,
)
from course_lib.exercises.tensors import place_statistic, place_vector, widen_inputs
from course_lib.exercises.wrong_formulas import (
    FIXED_EPS,
    WRONG_COLUMNS,
    find_divisor,
    list_dtype_models,
    list_rounded_outputs,
    repeat_first_row,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan, Symptom
from course_lib.grading.judging.elements import judge_elements


def plan_dx(
    case: Case, kernel: str, rng: np.random.Generator, norm: Callable, vjp: Callable, tiled: bool
) -> Plan:
    dy, x, w = draw_backward_inputs(case, rng)
    tensors = (
        place_by_rows("dy", case, dy), place_by_rows("x", case, x), place_vector("w", case, w),
        *(place_statistic(name, case, values) for name,
            values in save_statistics(x, case.eps, norm).items()), place_by_rows("dx", case, None),
    )  # fmt: skip
    arguments = [tensor.name for tensor in tensors]
    arguments += [*tensors[0].strides, tensors[1].strides[0], tensors[-1].strides[0]]
    arguments += [case.M] * tiled + [case.N]
    constexprs = {"ROWS": case.rows, "BLOCK": case.block} if tiled else {"BLOCK": case.block}
    inputs = widen_inputs(tensors)
    programs = -(-case.M // case.rows)
    return Plan(
        case, kernel, (programs,), tensors, tuple(arguments), constexprs,
        {"dx": expect_dx(case, inputs, vjp(dy, x, w, case.eps).dx)},
        inputs=inputs, spread=dict.fromkeys(("x", "dx"), programs),
    )  # fmt: skip


# wrong formulas: a cause, and the differences from the right formula
Mistake = tuple[str, dict[str, Any]]
OF_BOTH: tuple[Mistake, ...] = (
    ("c1_missing", {"c1": 0}),
    *(("rstd_in_dx", {"power": power}) for power in (0, 2, -1, 3)),
    ("xhat_in_one_term", {"powers": (1, 0, 1)}),  # for RMSNorm the same as x for xhat
    ("rstd_in_dx", {"powers": (0, 0, 1)}),  # a forgotten pair of brackets
    ("rstd_in_dx", {"powers": (1, 0, 0)}),
    ("rstd_in_dx", {"powers": (1, 1, 0)}),
    ("rstd_in_dx", {"powers": (0, 1, 1)}),
    ("rstd_in_dx", {"powers": (1, 2, 1)}),
    ("rstd_in_dx", {"powers": (1, 3, 1)}),
    ("w_missing_in_dx", {"w": "1"}),
    ("w_twice", {"w": "w * w"}),
    ("one_plus_w", {"w": "1 + w"}),
    ("w_misapplied", {"w": "1 / w"}),
    ("w_misapplied", {"w": "by row"}),
    ("w_misapplied", {"w": "1 for 0"}),
    # the right result for w = 1, times w
    ("w_outside_means", {"w1": "1", "w2": "1", "outer": True}),
    # wdy in the means, but dy without w beside them
    ("w_outside_means", {"w": "1", "outer": False}),
    ("w_twice", {"w1": "w * w"}),
    ("c1_of_dy", {"w1": "1"}),
    ("xhat_wrong", {"xhat": "x"}),
    ("xhat_wrong", {"xhat": "deviation"}),
    ("zeros_left_out", {"xhat": "0 for 0"}),
    *(
        ("xhat_in_one_term", {where: which})
        for where in ("c1", "dx")
        for which in ("x", "deviation", "scaled")
    ),
    *(
        ("rstd_misread", {"xhat": which, "power": power})
        for which, power in (("divided", -1), ("divided", 1))
    ),
    *(
        ("rstd_misread", {"xhat": which, "power": power})
        for which, root in (("root of rstd", 0.5), ("1 / root of rstd", -0.5))
        for power in (root, 1)
    ),
    ("sign_of_c1_or_c2", {"c1": -1}),
    ("sign_of_dx", {"sign": -1}),
    ("dy_ignored", {"dy": "ones"}),
)
OF_LAYER_NORM: tuple[Mistake, ...] = (
    ("projection_missing", {"c1": 0, "c2": 0}),
    ("c2_missing", {"c2": 0}),
    *OF_BOTH,
    ("xhat_wrong", {"xhat": "scaled"}),
    ("xhat_wrong", {"xhat": "mean not scaled"}),
    ("statistic_misread", {"xhat": "swapped"}),  # rstd itself is right
    ("c2_of_dy", {"w2": "1"}),
    ("w_outside_means", {"w1": "1", "w2": "1"}),  # dy without w in both means, wdy beside them
    ("c2_times_xhat", {"c2_along": "xhat"}),
    ("sign_of_c1_or_c2", {"c2": -1}),
    ("sign_of_c1_or_c2", {"c1": -1, "c2": -1}),
    ("c1_and_c2_swapped", {"swap": True}),
)
OF_RMS_NORM: tuple[Mistake, ...] = (
    *OF_BOTH,
    ("c2_in_rms_norm", {"c2": 1}),
    ("c2_in_rms_norm", {"c2": 1, "c1": 0}),
    ("mean_subtracted", {"xhat": "centred"}),
    ("mean_subtracted", {"xhat": "centred", "c2": 1}),
)
OF_LANES: tuple[Mistake, ...] = (
    *((cause, {"columns": columns}) for cause, columns in WRONG_COLUMNS),
    *(("mask_missing", {"padding": value}) for value in ("nan", "inf")),
)
LAYER_NORM_MISTAKES: tuple[Mistake, ...] = (
    *OF_LAYER_NORM,
    *OF_LANES,
    *(
        ("vjp_divisor", {"divisor1": one, "divisor2": two})
        for one in ("N", "BLOCK", "1", "N-1", "N-1 or 1")
        for two in ("N", "BLOCK", "1", "N-1", "N-1 or 1")
        if (one, two) != ("N", "N")
    ),
    *(("vjp_divisor", {"over_tile": which}) for which in ("c1", "c2", "c1 c2")),
    ("padding_in_c1", {"padding": "c2 taken out"}),
    ("padding_in_c1", {"padding": "ones"}),
)


def list_models(mistakes: tuple[Mistake, ...]) -> Iterator[tuple[str, Model]]:
    for cause, changes in mistakes:
        yield cause, lambda p, changes=changes: {"dx": compute_wrong_dx(p, **changes)}
    yield "same_row", take_first_row
    for which, names in product(
        ("tile's first", "first", "first tile's", "program's"),
        (("mean", "rstd"), ("mean",), ("rstd",)),
    ):
        yield (
            "statistics_of_another_row",
            lambda p, w=which, n=names: {"dx": compute_wrong_dx(share_saved(p, w, n))},
        )
    yield from list_misread_models(lambda p: {"dx": compute_wrong_dx(p)})
    yield from list_saved_models()
    yield from list_dx_dtype_models(("dy", "x", "w"))


def list_dx_dtype_models(others: tuple[str, ...]) -> Iterator[tuple[str, Model]]:
    def right(p: Plan) -> Outputs:
        return {"dx": compute_wrong_dx(p)}

    yield from list_dtype_models(right, ("x", "dy", "w"))
    yield from list_rounded_outputs(right, "dx", others)


def list_saved_models() -> Iterator[tuple[str, Model]]:
    """Yield dx from statistics that backward computes again, with a fixed eps, divided by N or by N
    - 1."""
    for eps, less in product(FIXED_EPS, (0, 1)):
        yield (
            "recomputed_statistics",
            lambda p, eps=eps, less=less: {
                "dx": compute_wrong_dx(compute_saved_anew(p, eps, correction=less))
            },
        )


def share_saved(p: Plan, which: str, names: tuple[str, ...]) -> Plan:
    """Return the plan with saved statistics of other rows.

    These are the first row of the tile or of the matrix, the same row in the first tile, or the row
    with the program's number.
    """
    row, height = np.arange(p.case.M), p.case.rows
    rows = {
        "tile's first": row // height * height,
        "first": 0 * row,
        "first tile's": row % height,
        "program's": row // height,
    }[which]
    return replace(
        p, inputs=p.inputs | {name: p.inputs[name][rows] for name in names if name in p.inputs}
    )


def take_first_row(p: Plan) -> Outputs:
    return {"dx": compute_wrong_dx(repeat_first_row(p, *(p.inputs.keys() - {"w"})))}


def is_wrong_where_sums_vanish(p: Plan, outputs: Outputs) -> bool:
    """Return True if dx is wrong in some rows whose c1 or c2 is exactly 0, and nothing else is
    wrong."""
    if p.case.fill not in ("zeros", "constant") or "dx" not in outputs:
        return False
    wrong = {name: judge_elements(outputs[name], want).wrong for name, want in p.expected.items()}
    wdy = p.inputs["w"] * p.inputs["dy"]
    vanish = ((compute_hat(p.inputs, "xhat") * wdy).sum(axis=1) == 0) | (wdy.sum(axis=1) == 0)
    rows = np.flatnonzero(wrong.pop("dx").any(axis=1))
    return bool(rows.size and vanish[rows].all()) and not any(
        where.any() for where in wrong.values()
    )


# A row of equal numbers has c1 = 0 as well. So the cause for such rows is tried before the one for
# all rows with a sum of 0.
RARE: tuple[tuple[str, Symptom], ...] = (
    ("flat_row", lambda p, outputs: p.case.fill == "constant"),
    ("sum_of_zero", is_wrong_where_sums_vanish),
)


def compute_wrong_dx(
    p: Plan, *, dy="dy", w="w", w1=None, w2=None, outer=None, xhat="xhat", c1: float | str = 1,
    dx=None, c2=None,
    c2_along="1", divisor1="N", divisor2="N", power=1.0, powers=None, swap=False, padding="",
    over_tile="", sign=1, columns=None,
    axis1: int | tuple[int, int] = 1, axis2: int | tuple[int, int] = 1,
) -> np.ndarray:  # fmt: skip
    """Return dx with something wrong in it.

    ``w``, ``w1`` and ``w2`` name the factor that stands for w beside dy, in c1 and in c2.
    ``outer``: True multiplies the right result for w = 1 by w, False applies w in the means alone.
    ``xhat`` names the matrix that stands for xhat everywhere, ``c1`` the one in c1 alone, ``dx``
    the one beside c1 alone. ``c1`` and ``c2`` may also be factors. ``power`` or ``powers``: the
    powers of rstd beside dy, c1 and c2. ``axis1`` and ``axis2``: the axes over which c1 and c2 are
    means.
    """
    times, in_c1 = (1, c1) if isinstance(c1, str) else (c1, xhat)
    hat, beside = compute_hat(p.inputs, in_c1), compute_hat(p.inputs, dx or xhat)
    dy = p.inputs["dy"] if dy == "dy" else np.ones_like(p.inputs["dy"])
    with_dy, with_c1, with_c2 = _choose_w(p, (w, w1 or w, w2 or w), outer)
    c2 = "mean" in p.inputs if c2 is None else c2
    taken = slice(None) if columns is None else columns(p.case)
    products = (hat * with_c1 * dy)[:, taken].sum(axis=axis1, keepdims=True)
    total = (with_c2 * dy)[:, taken].sum(axis=axis2, keepdims=True)
    products, total = _add_padding(p, products, total, padding)
    products = _sum_over_tile(products, p.case.rows) if "c1" in over_tile else products
    total = _sum_over_tile(total, p.case.rows) if "c2" in over_tile else total
    along_hat = times * products / find_divisor(p, divisor1) / _count_rows(p.case, axis1)
    along_one = c2 * total / find_divisor(p, divisor2) / _count_rows(p.case, axis2)
    if swap:
        along_hat, along_one = along_one, along_hat
    rstd = p.inputs["rstd"][:, None]
    of_dy, of_hat, of_one = (power,) * 3 if powers is None else powers
    out = with_dy * dy * rstd**of_dy - beside * along_hat * rstd**of_hat
    out = out - along_one * (beside if c2_along == "xhat" else 1) * rstd**of_one
    return sign * out * (p.inputs["w"] if outer else 1)


def _choose_w(p: Plan, names: tuple[str, ...], outer: bool | None) -> list[np.ndarray]:
    """Return the factors that stand for w beside dy, in c1 and in c2."""
    w = p.inputs["w"]
    factors = {
        "w": lambda: w, "1": lambda: np.ones_like(w), "w * w": lambda: np.square(w),
        "1 + w": lambda: 1 + w, "1 / w": lambda: 1 / w,
        "1 for 0": lambda: np.where(w == 0, 1, w),
        "by row": lambda: np.resize(w, p.case.M)[:, None],
    }  # fmt: skip
    with_dy, with_c1, with_c2 = (factors[name]() for name in names)
    if outer is None:
        return [with_dy, with_c1, with_c2]
    return [np.ones_like(with_dy), with_c1, with_c2] if outer else [with_dy, w, w]


def _add_padding(
    p: Plan, products: np.ndarray, total: np.ndarray, padding: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of c1 and c2 with what the padded lanes add to them."""
    lanes, rstd, mean = p.case.padded_lanes, p.inputs["rstd"][:, None], take_mean(p.inputs)
    if not padding or not lanes:
        return products, total
    # mean(xhat * (wdy - c2)): the same on paper, and -c2 * xhat in a padded lane
    if padding == "c2 taken out":
        return products + lanes * mean * rstd * total / p.case.N, total
    if padding == "ones":  # wdy loaded or computed as 1 in padded lanes
        return products - lanes * mean * rstd, total + lanes
    # x and dy loaded as 1: xhat is rstd there
    return products + lanes * (rstd if padding == "x and dy" else float(padding)), total


def _count_rows(case: Case, axis: int | tuple[int, int]) -> float:
    """Return how many times N elements are in a sum over this axis."""
    return {1: 1.0, 0: case.M / case.N, (0, 1): case.M}[axis]


def _sum_over_tile(sums: np.ndarray, rows: int) -> np.ndarray:
    """Return for each row the sum over all rows of its program."""
    return np.concatenate(
        [
            np.full_like(sums[at : at + rows], sums[at : at + rows].sum())
            for at in range(0, len(sums), rows)
        ]
    )
