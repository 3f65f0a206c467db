"""What backward passes share: dy, x, w and the saved statistics, the errors that fp32 may make, and
wrong xhats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import choose_strides, draw_matrix, draw_weight, spoil_row
from course_lib.exercises.wrong_formulas import change_inputs
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Plan
from course_lib.norms import reference

Inputs = dict[str, np.ndarray]  # of a plan: float64, by the name of the tensor
# the gap between sliced rows: three tensors with three row strides
SPARE = {"dy": 3, "x": 9, "y": 9, "dx": 14}


def draw_gradient(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Draw dy of the case, in float64. Its mean is 0.5, so that c1 and c2 both matter. A bad row
    has its NaN or Inf here."""
    shape = (case.M, case.N)
    dy = by_hand.choose_gradient(*shape) if case.by_hand else rng.normal(0.5, size=shape)
    spoil_row(case, dy)
    return dy


def draw_backward_inputs(
    case: Case, rng: np.random.Generator, expanded: float | None = 1.25
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw dy, x and w of a backward pass. ``expanded``: the number that an expanded dy holds;
    None: the first that was drawn.

    The NaN of a bad row is in dy alone: one in x would already be in the saved statistics.
    """
    x = draw_matrix(replace(case, fill="normal") if case.has_bad_row else case, rng)
    dy = draw_gradient(case, rng)
    if case.fill == "zeros":
        _let_sums_vanish(dy, x)
    if case.layout == "expanded":
        dy[...] = dy[0, 0] if expanded is None or case.by_hand else expanded
    return round_to(dy, case.dtype_of("dy")), x, draw_weight(case, rng)


def _let_sums_vanish(dy: np.ndarray, x: np.ndarray) -> None:
    """Make the sums of some rows exactly 0, though their terms are not: x is 0 in columns 0 and 3,
    and w is the same in 0, 2 and 3.

    Of every five rows the second has sum(dy) = c1 = c2 = 0, the third c2 = 0, the fourth c1 = 0,
    and in the fifth dy is 0.
    """
    N = x.shape[1]
    for row, columns in ((1, (0, 3)), (2, (0, 2)), (3, (0,))):
        if N >= 4:
            dy[row::5] = 0
            dy[row::5, columns] = (1, -1)[: len(columns)]
    x[3::5, N - N // 2 :] = -x[3::5, : N // 2][:, ::-1]  # its mean is 0, so xhat is 0 in column 0
    x[3::5, N // 2 : N - N // 2] = 0
    dy[4::5] = 0


def save_statistics(
    x: np.ndarray, eps: float, norm: Callable = reference.layer_norm
) -> dict[str, np.ndarray]:
    """Return the statistics that the forward pass saves, (M,) in fp32: rstd, and for LayerNorm mean
    before it."""
    forward = norm(x, eps=eps)
    return {
        name: round_to(getattr(forward, name), "fp32")
        for name in ("mean", "rstd")
        if hasattr(forward, name)
    }


def place_by_rows(name: str, case: Case, values: np.ndarray | None) -> Tensor:
    """Place dy, x or dx for a kernel. A layout of rows is that of all three, any other one is dy's.

    The guards hold a program's rows in any layout: a kernel that ignores the strides of an expanded
    dy, which is one element, reads far past it.
    """
    layout = case.layout if name == "dy" or case.layout in ("sliced", "far") else "packed"
    strides = choose_strides(layout, (case.M, case.N), SPARE[name])
    far = layout.startswith("far")
    guard = size_guard(
        case.block if far else (case.M + case.rows) * (case.N + max(SPARE.values())) + case.block
    )
    return Tensor(name, case.dtype_of(name), (case.M, case.N), strides, values, far, guard)


def bound_terms(inputs: Inputs) -> dict[str, np.ndarray]:
    """Return the sizes of the terms of dx, and of each row's terms of dw and db: the error that
    fp32 may make is proportional to them.

    A saved mean has a relative rounding error, so the error of xhat is proportional to ``|xhat| +
    |mean| * rstd``. This error enters c1 as the mean of its product with ``|wdy|``, ``xhat * c1``
    through both factors, and dw row by row. Where xhat is not made of x, ``inputs`` have under
    "unsure" what its error is proportional to.
    """
    xhat, dy, rstd = compute_hat(inputs, "xhat"), inputs["dy"], inputs["rstd"][:, None]
    wdy = inputs.get("w", 1.0) * dy
    unsure = (
        inputs["unsure"] if "unsure" in inputs else np.abs(xhat) + np.abs(take_mean(inputs)) * rstd
    )
    c1 = (xhat * wdy).mean(axis=1, keepdims=True)
    c1_terms = (unsure * np.abs(wdy)).mean(axis=1, keepdims=True)
    dx = rstd * (
        np.abs(wdy)
        + unsure * np.abs(c1)
        + np.abs(xhat) * c1_terms
        + np.abs(wdy).mean(axis=1, keepdims=True)
    )
    return {"dx": dx, "dw": np.abs(dy) * unsure, "db": np.abs(dy)}


def expect_dx(case: Case, inputs: Inputs, dx: np.ndarray) -> Expected:
    return make_expected(
        dx, bound_terms(inputs)["dx"], case.dtype_of("dx"), infinite=case.fill == "inf row"
    )


def take_mean(inputs: Inputs) -> np.ndarray:
    """Return the saved mean, (M, 1); RMSNorm has none, and then it is 0."""
    return inputs["mean"][:, None] if "mean" in inputs else np.zeros((len(inputs["x"]), 1))


def compute_hat(inputs: Inputs, which: str) -> np.ndarray:
    """Return xhat, or a wrong matrix in its place."""
    x, mean, rstd = inputs["x"], take_mean(inputs), inputs["rstd"][:, None]
    return {
        "xhat": lambda: (x - mean) * rstd,
        "x": lambda: x,
        "deviation": lambda: x - mean,  # never scaled
        "scaled": lambda: x * rstd,  # no mean subtracted
        "mean not scaled": lambda: x * rstd - mean,
        "scaled twice": lambda: (x - mean) * rstd**2,
        "swapped": lambda: (x - rstd) * mean,
        # RMSNorm with a mean taken out
        "centred": lambda: (x - x.mean(axis=1, keepdims=True)) * rstd,
        "divided": lambda: (x - mean) / rstd,
        "0 for 0": lambda: np.where(x == 0, 0.0, (x - mean) * rstd),
        "root of rstd": lambda: (x - mean) * np.sqrt(rstd),
        "1 / root of rstd": lambda: (x - mean) / np.sqrt(rstd),
        "ones": lambda: np.ones_like(x),
        "rstd": lambda: rstd + 0 * x,
    }[which]()


def list_misread_models(compute: Callable[[Plan], Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield the right formula of misread statistics: swapped, or one used for both. RMSNorm has no
    mean, so nothing is misread there."""
    for names in (("rstd", "mean"), ("rstd", "rstd"), ("mean", "mean")):
        yield (
            "statistic_misread",
            lambda p, names=names: compute(_misread(p, *names)) if "mean" in p.inputs else {},
        )


def _misread(p: Plan, mean: str, rstd: str) -> Plan:
    return change_inputs(p, mean=p.inputs[mean], rstd=p.inputs[rstd])


def compute_saved_anew(p: Plan, eps: float, correction: int = 0) -> Plan:
    """Return the plan with statistics that backward computes again, with this eps, divided by N -
    ``correction``."""
    x = p.inputs["x"]
    squares = ((x - x.mean(axis=1, keepdims=True)) ** 2 if "mean" in p.inputs else x**2).sum(
        axis=1
    ) / np.float64(x.shape[1] - correction)
    anew = {"mean": x.mean(axis=1), "rstd": 1 / np.sqrt(squares + eps)}
    return replace(
        p, inputs=p.inputs | {name: values for name, values in anew.items() if name in p.inputs}
    )
