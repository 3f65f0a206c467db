"""What the gradients in PyTorch operations share: cases, the plan and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.dx_kernels import (
    OF_RMS_NORM,
    Mistake,
    compute_wrong_dx,
    list_dx_dtype_models,
    list_saved_models,
)
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.gradients import (
    bound_terms,
    compute_hat,
    compute_saved_anew,
    draw_backward_inputs,
    list_misread_models,
    save_statistics,
)
from course_lib.exercises.tensors import choose_strides, widen_inputs
from course_lib.exercises.wrong_formulas import FEW, FIXED_EPS, list_dtype_models
from course_lib.grading.cases.buffers import Tensor, compute_strides
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan
from course_lib.norms import reference

# In every case dy is normal with mean 0.5, so that both of its projections matter; w is away from 0
# and 1.
_COMMON = (
    make_case("worked example", 3, 8, 0),
    make_case("mean 3", 5, 17, 0, "rows with mean 3: x and xhat are far apart"),
    make_case("square", 7, 7, 0, mistake="c1 and c2 are means over the rows"),
    make_case("one row", 1, 33, 0),
    make_case("one column", 5, 1, 0, mistake="c1 or c2 is divided by N - 1"),
    make_case("two columns", 4, 2, 0),
    make_case("many rows", 1000, 5, 0, "1000 rows share one w",
        "dw and db are means, or only some rows are added up", mean=-2.0),
    make_case("small spread", 3, 96, 0, "std 0.03, eps = 1e-12: rstd is 33",
        "rstd is computed anew, with an eps of the code", eps=1e-12, mean=0.1),
    make_case("large eps", 3, 100, 0, mistake="rstd is computed anew, without eps"),
    make_case("mean 1000", 3, 768, 0, mistake="xhat is computed from a rounded mean"),
    make_case("fp16", 4, 129, 0, "x, dy and w in fp16, mean 8", mean=8.0, std=0.5),
    make_case("fp16, many rows", 600, 8, 0, "sums over 600 rows need more than fp16's 11 bits",
        "dw and db are added up in fp16", dtype="fp16", mean=3.0),
    make_case("fp16, std 100", 2, 2500, 0, mistake="products are computed in fp16, and overflow"),
    make_case("bf16", 3, 127, 0),
    make_case("fp32 weights", 4, 33, 0, "x and dy in fp16, w in fp32: dx in fp16, the rest in fp32",
        "a gradient has the dtype of another tensor"),
    make_case("fp16 weights", 4, 33, 0),
    make_case("fp32 dy", 4, 33, 0, "each in a dtype of its own"),
    make_case("fp32 x", 4, 33, 0, "each in a dtype of its own"),
    make_case("5000 columns", 2, 5000, 0, "5000 columns", "a row ends after 4096 columns",
        mean=1.0),
    make_case("zeros", 5, 17, 0, "0 in x, in w and as sums of rows whose terms are not 0",
        "an element or a sum that is 0 is taken for padding"),
    make_case("transposed", 6, 10, 0, "x and dy are transposed matrices"),
    make_case("sliced", 4, 50, 0, "x and dy are slices of wider matrices"),
    make_case("expanded", 4, 50, 0,
        "dy is one number expanded to (M, N), as y.sum().backward() sends it"),
    make_case("a NaN row", 4, 19, 0,
        "row 0 of dy begins with NaN: dx shows them in that row only, dw in their columns",
        "dx of one row takes part in another"),
    make_case("an Inf row", 4, 19, 0, "dy holds an Inf in row 1"),
)  # fmt: skip
LAYER_NORM_CASES = (
    *_COMMON,
    make_case("constant row", 2, 20, 0, "xhat is 0 and rstd is 1 / sqrt(eps)",
        "rstd is computed anew, without eps"),
)  # fmt: skip
RMS_NORM_CASES = (
    *_COMMON,
    make_case("zero row", 2, 20, 0, "every element of x is 0", "rstd is computed anew, without eps",
        mean=0.0, eps=1e-3),
)  # fmt: skip


def plan_gradients(
    case: Case, entry_point: str, rng: np.random.Generator, norm: Callable, vjp: Callable,
    arguments: tuple[str, ...] = ("dy", "x", "w"),
    gradients: tuple[str, ...] = ("dx", "dw", "db"), dtype: str = "",
) -> Plan:  # fmt: skip
    """Plan some ``gradients``, from ``arguments`` and the saved statistics. ``dtype``: that of dw
    and db, if it is not w's."""
    dy, x, w = draw_backward_inputs(case, rng, expanded=None)
    saved = save_statistics(x, case.eps, norm)
    shape, dy_layout = (case.M, case.N), case.layout
    tensors = [
        Tensor("dy", case.dtype_of("dy"), shape, choose_strides(dy_layout, shape, spare=9), dy),
        Tensor(
            "x",
            case.dtype_of("x"),
            shape,
            choose_strides("packed" if dy_layout == "expanded" else dy_layout, shape),
            x,
        ),
        Tensor("w", case.dtype_of("w"), (case.N,), (1,), w),
        *(Tensor(name, "fp32", (case.M,), (1,), values) for name, values in saved.items()),
    ]
    inputs = widen_inputs(tensors)
    terms, expected = bound_terms(inputs), {}
    for name, values in vjp(dy, x, w, case.eps)._asdict().items():
        if name in gradients:
            gradient_dtype = case.dtype_of("x") if name == "dx" else dtype or case.dtype_of("w")
            allowed = terms[name] if name == "dx" else terms[name].sum(axis=0)
            expected[name] = make_expected(
                values, allowed, gradient_dtype, infinite=case.fill == "inf row"
            )
            tensors.append(
                Tensor(name, gradient_dtype, values.shape, compute_strides(values.shape))
            )
    return Plan(
        case, entry_point, (), tuple(tensors), (*arguments, *saved), {}, expected, inputs=inputs
    )


# wrong formulas: a cause, and the differences from the right formula
_XHAT: tuple[Mistake, ...] = (
    ("xhat_wrong", {"xhat": "x"}),
    ("xhat_wrong", {"xhat": "deviation"}),
    ("xhat_wrong", {"xhat": "scaled"}),
    ("xhat_wrong", {"xhat": "divided"}),
    ("xhat_wrong", {"xhat": "scaled twice"}),
    ("mean_subtracted", {"xhat": "centred"}),  # right if the forward pass subtracted the mean
    ("zeros_left_out", {"xhat": "0 for 0"}),
)
FUNCTION_MISTAKES: tuple[Mistake, ...] = (
    ("vjp_divisor", {"divisor1": "N-1"}),
    ("vjp_divisor", {"divisor1": "N-1 or 1"}),
    ("vjp_divisor", {"divisor1": "1"}),
    ("vjp_divisor", {"divisor1": "M"}),
    ("vjp_divisor", {"axis1": 0, "axis2": 0}),
    ("vjp_divisor", {"axis1": 0}),
    ("vjp_divisor", {"axis1": (0, 1), "axis2": (0, 1)}),
)
RMS_NORM_DX_MISTAKES: tuple[Mistake, ...] = (*OF_RMS_NORM, *FUNCTION_MISTAKES)
_SOME_ROWS: tuple[Mistake, ...] = (
    ("rows_left_out", {"rows": "all but the first"}),
    ("rows_left_out", {"rows": "all but the last"}),
    ("rows_left_out", {"rows": "every other"}),
    *(("rows_left_out", {"rows": most}) for most in FEW),
    ("sum_of_zero", {"rows": "sum of dy is not 0"}),
    ("sum_of_zero", {"rows": "sum of dy * xhat is not 0"}),
)
_DW: tuple[Mistake, ...] = (
    ("dw_sums_columns", {"columns": True, "xhat": "x"}),
    ("dw_sums_columns", {"columns": True, "xhat": "x", "rows": "last"}),
    ("dw_sums_columns", {"columns": True}),
    ("dw_sums_columns", {"columns": True, "rows": "last"}),
    *_XHAT,
    ("dw_without_xhat", {"xhat": "ones"}),
    ("w_in_dw", {"w": 1}),
    ("w_in_dw", {"w": "w / w"}),
    ("rows_not_summed", {"rows": "last"}),
    ("rows_not_summed", {"rows": "first"}),
    ("rows_not_summed", {"rows": "mean"}),
    ("rows_not_summed", {"rows": "last", "xhat": "x"}),
    *_SOME_ROWS,
    ("dy_ignored", {"dy": "ones"}),
    ("sign_of_dw_or_db", {"sign": -1}),
)
_DB: tuple[Mistake, ...] = (
    ("w_in_dw", {"w": 1}),
    ("rows_not_summed", {"rows": "last"}),
    ("rows_not_summed", {"rows": "first"}),
    ("rows_not_summed", {"rows": "mean"}),
    ("xhat_in_db", {"xhat": "xhat"}),
    *_SOME_ROWS,
    ("dy_ignored", {"dy": "ones"}),
    ("sign_of_dw_or_db", {"sign": -1}),
)


def list_models(of_dx: tuple[Mistake, ...]) -> Iterator[tuple[str, Model]]:
    """Yield one mistake in one gradient. Several mistakes in one submission are found one by
    one."""
    for cause, changes in of_dx:
        yield cause, lambda p, changes=changes: {"dx": compute_wrong_dx(p, **changes)}
    if of_dx:
        yield from list_misread_models(lambda p: {"dx": compute_wrong_dx(p)})
        yield from list_saved_models()
        yield from list_dx_dtype_models(("dy", "w"))
    yield from list_misread_models(lambda p: {"dw": compute_wrong_sum(p, xhat="xhat")})
    for eps, correction in product((*FIXED_EPS, 0.0), (0, 1)):
        yield (
            "recomputed_statistics",
            lambda p, e=eps, c=correction: {
                "dw": compute_wrong_sum(compute_saved_anew(p, e, correction=c), xhat="xhat")
            },
        )
    yield (
        "recomputed_statistics",
        lambda p: {"dw": compute_wrong_sum(_normalise_columns(p), xhat="xhat")},
    )
    yield (
        "product_of_sums",
        lambda p: {"dw": p.inputs["dy"].sum(axis=0) * compute_hat(p.inputs, "xhat").sum(axis=0)},
    )
    for name, which in (("dw", "xhat"), ("db", "ones")):
        yield from list_dtype_models(
            lambda p, n=name, w=which: {n: compute_wrong_sum(p, xhat=w)}, ("x", "dy")
        )
    yield "outputs_swapped", _swap_sums
    for name, mistakes in (("dw", _DW), ("db", _DB)):
        for cause, changes in mistakes:
            changes = dict[str, Any](xhat="xhat" if name == "dw" else "ones") | changes
            yield (
                cause,
                lambda p, name=name, changes=changes: {name: compute_wrong_sum(p, **changes)},
            )


def _normalise_columns(p: Plan) -> Plan:
    """Return the plan with the xhat of a batch norm: each column has its own statistics, over the
    rows."""
    x = p.inputs["x"]
    xhat = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + p.case.eps)
    ones = {"mean": np.zeros(len(x)), "rstd": np.ones(len(x))}
    return replace(
        p, inputs=p.inputs | {"x": xhat} | {name: v for name, v in ones.items() if name in p.inputs}
    )


def _swap_sums(p: Plan) -> Outputs:
    right = {name: want.values for name, want in p.expected.items()}
    return {"dw": right["db"], "db": right["dw"]} if "db" in right else {}


def compute_wrong_sum(
    p: Plan, *, dy="dy", w=0, xhat, rows="all", columns=False, sign=1
) -> np.ndarray:
    """Return dw or db: the sum over the rows of dy times ``xhat`` times w to the power ``w``;
    ``columns`` adds up dy's columns first."""
    of_w = p.inputs["w"]
    values = (of_w / of_w if w == "w / w" else of_w**w) * _find_dy(p, dy)
    terms = (values.sum(axis=1, keepdims=True) if columns else values) * compute_hat(p.inputs, xhat)
    taken = {
        "all but the first": terms[1:],
        "all but the last": terms[:-1],
        "every other": terms[::2],
        "sum of dy is not 0": terms[p.inputs["dy"].sum(axis=1) != 0],
        "sum of dy * xhat is not 0": terms[
            (p.inputs["dy"] * compute_hat(p.inputs, "xhat")).sum(axis=1) != 0
        ],
    }.get(rows, terms[:rows] if isinstance(rows, int) else terms)
    return sign * {"last": terms[-1], "first": terms[0], "mean": terms.mean(axis=0)}.get(
        rows, taken.sum(axis=0)
    )


def _find_dy(p: Plan, which: str) -> np.ndarray:
    return p.inputs["dy"] if which == "dy" else np.ones_like(p.inputs["dy"])


plan_layer_norm = partial(plan_gradients, norm=reference.layer_norm, vjp=reference.layer_norm_vjp)
