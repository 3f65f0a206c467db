"""LayerNorm as an autograd Function: the ways in which autograd calls one, and the mistakes in
connecting kernels to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from course_lib.exercises.expectations import make_expected
from course_lib.exercises.gradients import bound_terms, draw_gradient
from course_lib.exercises.tensors import (
    choose_strides,
    draw_matrix,
    draw_shift,
    draw_weight,
    round_values,
    widen_inputs,
)
from course_lib.exercises.wrong_formulas import vary
from course_lib.grading.cases.buffers import Tensor, compute_strides, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan, Symptom
from course_lib.norms import reference

_BITS = {"x": 1, "w": 2, "b": 4}
Gradients = dict[str, np.ndarray | None]


@dataclass(frozen=True)
class WiringCase(Case):
    """A case of an autograd Function.

    The first word of ``layout`` says whether it is the layout of x or of dy. ``needs`` names the
    inputs that require gradients, ``given`` the parameters that are not None. ``then`` is "", or
    names a further event: "residual", "twice", "change" or "second".
    """

    needs: str = "xwb"
    given: str = "wb"
    then: str = ""


FORWARD = (
    WiringCase("y, worked example", 3, 8, 0, "the 3 x 8 worked example",
        "any formula but the right one: the lesson works out each number", fill="worked"),
    WiringCase("y, three dimensions", 6, 17, 0, "y has the shape of x",
        "y has the shape of a matrix", mean=3.0, leading=(2, 3)),
    WiringCase("y, one row", 1, 33, 0, "x is one row", "there is a second row for certain",
        mean=1.0, leading=()),
    WiringCase("y, one column", 5, 1, 0, "N = 1", "the sum is divided by N - 1", mean=2.0),
    WiringCase("y, vector", 1, 9, 0, "x has one dimension",
        "x is taken to have two dimensions at least", mean=1.0, vector=True),
    WiringCase("y, sliced", 5, 20, 0, "x is a slice of a wider matrix",
        "N is taken for the distance between rows", mean=2.0, layout="x sliced"),
    WiringCase("y, transposed", 6, 10, 0, "x is a transposed matrix",
        "the columns are taken to lie one after the other", mean=2.0, layout="x transposed"),
    WiringCase("y, permuted", 6, 10, 0, "the first two dimensions of x have changed places",
        "the leading dimensions are taken for one, with one stride", mean=2.0, layout="x permuted",
        leading=(2, 3)),
    WiringCase("y, large eps", 3, 24, 0, "std 0.03: eps = 0.1 rules rstd",
        "eps does not reach the kernel", std=0.03, eps=0.1),
    WiringCase("y, no w, no b", 4, 11, 0, "w and b are None", "w or b is taken to be there",
        given="", needs="x", mean=1.0),
    WiringCase("y, no b", 4, 11, 0, "b is None", "b is taken to be there", given="w", needs="xw",
        mean=1.0),
    WiringCase("y, fp32 weights", 4, 18, 0, "x in fp16, w and b in fp32",
        "w and b are rounded to the dtype of x", dtype="fp16", w_dtype="fp32", mean=3.0),
    WiringCase("y, no gradients", 4, 13, 0, "nothing requires a gradient",
        "something is saved or returned only if gradients are wanted", needs="", mean=1.0),
)  # fmt: skip
BACKWARD = (
    WiringCase("mean 3", 5, 17, 0, "x, w and b require gradients",
        "a wrong tensor is saved, or in a wrong order", mean=3.0),
    WiringCase("square", 7, 7, 0, "M = N", "rows are taken for columns", mean=1.0, std=2.0),
    WiringCase("one row", 1, 33, 0, "M = 1", "dw and db have the shape of a matrix", mean=1.0),
    WiringCase("one column", 5, 1, 0, "N = 1", "dx has the shape of a vector", mean=2.0),
    WiringCase("three dimensions", 6, 17, 0, "dy has three dimensions, and so must dx",
        "dx has the shape of a matrix", mean=3.0, leading=(2, 3)),
    WiringCase("vector", 1, 9, 0, "x and dy have one dimension",
        "dy is taken to have two dimensions at least", mean=1.0, vector=True),
    WiringCase("large eps", 3, 24, 0, "std 0.03: eps = 0.1 rules rstd",
        "eps is not kept for backward", std=0.03, eps=0.1),
    WiringCase("residual", 4, 12, 0, "z = y + x: the addition hands the same dy to both",
        "dx is written over dy, which the other path still needs", mean=1.0, then="residual"),
    WiringCase("twice", 4, 12, 0, "the graph is kept and differentiated a second time",
        "backward changes what was saved", mean=1.0, then="twice"),
    WiringCase("changed in place", 4, 12, 0,
        "x is doubled in place after the forward pass: backward must refuse",
        "x is kept as an attribute of ctx", then="change"),
    WiringCase("differentiated twice", 4, 12, 0,
        "the gradients are differentiated again, with create_graph=True",
        "a second derivative takes what a launch returned for a constant", mean=1.0, then="second"),
    WiringCase("x sliced", 5, 20, 0, "x is a slice of a wider matrix",
        "N is taken for the distance between rows of x", mean=2.0, layout="x sliced"),
    WiringCase("x transposed", 6, 10, 0, "x is a transposed matrix",
        "the columns of x are taken to lie one after the other", mean=2.0, layout="x transposed"),
    WiringCase("dy transposed", 6, 10, 0, "dy is transposed, as y.t() sends it",
        "the columns of dy are taken to lie one after the other", mean=2.0, layout="dy transposed"),
    WiringCase("dy permuted", 6, 10, 0, "the first two dimensions of dy have changed places",
        "the leading dimensions of dy are taken for one, with one stride", mean=2.0,
        layout="dy permuted", leading=(2, 3)),
    WiringCase("dy sliced", 6, 10, 0, "dy has every other column of a matrix",
        "the columns of dy are taken to lie one after the other", mean=2.0, layout="dy columns"),
    WiringCase("dy expanded", 6, 10, 0, "dy is one number expanded, as y.sum() sends it",
        "dy is read as if it had M * N numbers", mean=2.0, layout="dy expanded"),
    WiringCase("dy expanded, three dimensions", 6, 10, 0, "the same for three dimensions",
        "dy is made a matrix by a view that an expanded one does not have", mean=2.0,
        layout="dy expanded", leading=(3, 2)),
    WiringCase("only x", 4, 11, 0, "w and b are frozen", "gradients are returned for all or none",
        needs="x", mean=1.0),
    WiringCase("only w", 4, 11, 0, "only w requires a gradient",
        "dw is returned only if x needs a gradient", needs="w", mean=1.0),
    WiringCase("only b", 4, 11, 0, "only b requires a gradient",
        "db is returned only if w needs a gradient", needs="b", mean=1.0),
    WiringCase("no b", 4, 11, 0, "b is None", "b is taken to be there", given="w", needs="xw",
        mean=1.0),
    WiringCase("no w", 4, 11, 0, "w is None", "w is taken to be there", given="b", needs="xb",
        mean=1.0),
    WiringCase("neither", 4, 11, 0, "w and b are None", "w or b is taken to be there", given="",
        needs="x", mean=1.0),
    WiringCase("fp32 weights", 40, 18, 0, "x and dy in fp16, w and b in fp32",
        "dw and db have the dtype of x", dtype="fp16", w_dtype="fp32", mean=3.0),
    WiringCase("fp16 weights", 4, 18, 0, "x and dy in fp32, w and b in fp16",
        "dw and db have the dtype of x", w_dtype="fp16", mean=3.0),
    WiringCase("bf16", 8, 18, 0, "everything in bf16", "a gradient is returned in fp32",
        dtype="bf16", mean=3.0),
)  # fmt: skip


def _plan_forward(case: WiringCase, entry_point: str, rng: np.random.Generator) -> Plan[WiringCase]:
    x, w, b, _ = _draw_inputs(case, rng)
    want = reference.layer_norm(x, w, b, case.eps)
    w64, b64 = (np.zeros(case.N) if v is None else v.astype(np.float64) for v in (w, b))
    scale = np.abs(w64) if w is not None else 1.0
    terms = (1 + np.abs(want.mean * want.rstd))[:, None] * scale + np.abs(b64) + np.abs(want.y)
    return _make_plan(
        case, entry_point, x, w, b, None, {"y": make_expected(want.y, terms, case.dtype)}
    )


def _plan_backward(
    case: WiringCase, entry_point: str, rng: np.random.Generator
) -> Plan[WiringCase]:
    x, w, b, dy = _draw_inputs(case, rng)
    if case.then == "change":
        return _make_plan(
            case, entry_point, x, w, b, dy, {"raised": Expected(np.array(1.0), np.array(0.25))}
        )
    want = reference.layer_norm_vjp(dy, x, w, case.eps)
    p = _Pass(x, w, dy, case.eps)
    inputs = {"x": p.x, "dy": p.dy, "w": p.w, "mean": p.mean[:, 0], "rstd": p.rstd[:, 0]}
    terms = {
        name: sizes if name == "dx" else sizes.sum(axis=0)
        for name, sizes in bound_terms(inputs).items()
    }
    dx = want.dx
    if case.then == "residual":
        dx, terms["dx"] = dx + p.dy, terms["dx"] + np.abs(p.dy) + np.abs(dx)
    values = {"dx": dx, "dw": want.dw, "db": want.db}
    dtypes = {"dx": case.dtype, "dw": case.w_dtype or case.dtype, "db": case.w_dtype or case.dtype}
    names = [f"d{name}" for name in case.needs]
    return _make_plan(
        case,
        entry_point,
        x,
        w,
        b,
        dy,
        {name: make_expected(values[name], terms[name], dtypes[name]) for name in names},
    )


class _Pass:
    """The numbers from which the gradients are computed, in float64."""

    def __init__(self, x, w, dy, eps: float):
        self.x, self.dy = x.astype(np.float64), dy.astype(np.float64)
        self.w = np.ones(x.shape[1]) if w is None else w.astype(np.float64)
        self.mean, self.rstd = (
            self.mean_of(self.x),
            1 / np.sqrt(self.x.var(axis=1, keepdims=True) + eps),
        )
        self.xhat, self.wdy = (self.x - self.mean) * self.rstd, self.w * self.dy
        self.c1, self.c2 = self.mean_of(self.xhat * self.wdy), self.mean_of(self.wdy)

    def gradients(self) -> dict[str, np.ndarray]:
        dx = (self.wdy - self.xhat * self.c1 - self.c2) * self.rstd
        return {"dx": dx, "dw": (self.dy * self.xhat).sum(axis=0), "db": self.dy.sum(axis=0)}

    @staticmethod
    def mean_of(values: np.ndarray) -> np.ndarray:
        return values.mean(axis=1, keepdims=True)


def _draw_inputs(
    case: WiringCase, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None, np.ndarray]:
    x = draw_matrix(case, rng)
    w = draw_weight(case, rng)
    b = draw_shift(case, rng, 1.0)
    dy = draw_gradient(case, rng)
    if case.layout == "dy expanded":
        dy[...] = dy[0, 0]
    return (
        x,
        w if "w" in case.given else None,
        b if "b" in case.given else None,
        round_to(dy, case.dtype),
    )


def _make_plan(
    case: WiringCase, entry_point: str, x, w, b, dy, expected: dict[str, Expected]
) -> Plan[WiringCase]:
    shape = (case.N,) if case.vector else (*(case.leading or (case.M,)), case.N)
    laid_out, _, layout = case.layout.partition(" ")

    def strides(name: str) -> tuple[int, ...]:
        return choose_strides(layout if name == laid_out else "packed", shape)

    w_dtype = case.w_dtype or case.dtype
    tensors = [Tensor("x", case.dtype, shape, strides("x"), x.reshape(shape))]
    tensors += [
        Tensor(name, w_dtype, (case.N,), (1,), values)
        for name, values in (("w", w), ("b", b))
        if values is not None
    ]
    if dy is not None:
        tensors.append(Tensor("dy", case.dtype, shape, strides("dy"), dy.reshape(shape)))
    for name, want in expected.items():
        of_x = name in ("y", "dx")
        if of_x:
            expected[name] = Expected(want.values.reshape(shape), want.allowed.reshape(shape))
        size = expected[name].values.shape
        dtype = "fp32" if name == "raised" else case.dtype if of_x else w_dtype
        tensors.append(Tensor(name, dtype, size, compute_strides(size)))
    flags = {
        "needs": sum(_BITS[name] for name in case.needs),
        **{use: int(case.then == use) for use in ("residual", "twice", "change", "second")},
    }
    arguments = ("x", *(n if v is not None else None for n, v in (("w", w), ("b", b))), case.eps)
    return Plan(
        case, entry_point, (), tuple(tensors), arguments, flags, expected,
        inputs=widen_inputs(tensors),
    )  # fmt: skip


def _list_forward_models() -> Iterator[tuple[str, Model[WiringCase]]]:
    for eps in (1e-5, 1e-6, 1e-12, 0.0):
        yield "eps_hard_coded", lambda p, eps=eps: _compute_y(p, eps=eps)
    yield "w_ignored", lambda p: _compute_y(p, w=False)
    yield "b_ignored", lambda p: _compute_y(p, b=False)
    yield "none_misread", lambda p: {"y": _compute_y(p)["y"] + ("b" not in p.case.given)}
    yield "none_misread", lambda p: {"y": _compute_y(p)["y"] * ("w" in p.case.given)}


def _compute_y(
    p: Plan[WiringCase], *, eps: float | None = None, w: bool = True, b: bool = True
) -> Outputs:
    x = p.inputs["x"].reshape(-1, p.case.N)
    y = reference.layer_norm(
        x,
        p.inputs.get("w") if w else None,
        p.inputs.get("b") if b else None,
        p.case.eps if eps is None else eps,
    ).y
    return {"y": y.reshape(p.expected["y"].values.shape)}


def _list_backward_models() -> Iterator[tuple[str, Model[WiringCase]]]:
    """Yield the outputs of right kernels that are wrongly connected to autograd."""
    gradients = ("dx", "dw", "db")
    for lost in (("dw",), ("db",), ("dx",), ("dw", "db")):
        yield "gradient_missing", partial(_return_wrongly, change=partial(_lose, names=lost))
    for needed in ("x", "w", "b"):
        others = [(name,) for name in gradients if needed not in name]
        for names in (*others, gradients):
            change = partial(_lose, names=names, unless=needed)
            yield "needs_misread", partial(_return_wrongly, change=change)
    yield "needs_misread", partial(_return_wrongly, change=_misread_needs)
    yield (
        "gradients_swapped",
        lambda p: _return_wrongly(p, lambda g, _: g | {"dw": g["db"], "db": g["dw"]}),
    )
    yield "dy_overwritten", _overwrite_dy
    yield from vary(_compute_from, "dy_ignored", dy=[np.ones])
    yield from vary(_compute_from, "eps_not_kept", eps=[1e-5, 1e-6, 1e-12, 0.0])
    yield from vary(_compute_from, "saved_order", swapped=[True])
    yield from vary(_compute_from, "wrong_tensor_saved", saved=["y", "xhat", "dy"])
    yield (
        "wrong_tensor_saved",
        lambda p: _compute_from(p, saved="dy", dy=lambda shape: p.inputs["x"].reshape(shape)),
    )
    yield from vary(_compute_from, "w_missing_in_dx", w=["ones"])
    yield "gradient_dtype", lambda p: _compute_from(p, dtype=p.case.dtype)


def _lose(
    gradients: Gradients, case: WiringCase, names: tuple[str, ...], unless: str = ""
) -> Gradients:
    """Return None for the gradients ``names``; with ``unless`` only if that input needs none."""
    if unless and unless in case.needs:
        return gradients
    return gradients | dict.fromkeys(names)


def _misread_needs(gradients: Gradients, case: WiringCase) -> Gradients:
    """Return dw if b needs a gradient, and db if w does."""
    needed = {"dw": "b" in case.needs, "db": "w" in case.needs}
    return gradients | {name: gradients[name] if needed[name] else None for name in needed}


def _compute_from(
    p: Plan[WiringCase],
    *,
    dy=None,
    eps: float | None = None,
    swapped: bool = False,
    saved: str = "x",
    w: str = "w",
    dtype: str = "",
) -> Outputs:
    """Return the outputs of a case if backward computes from wrong inputs."""
    case, N = p.case, p.case.N
    if case.then == "change":
        return {"raised": np.array(float(saved in ("x", "dy")))}  # x is read, wherever it was saved
    x, true_dy = p.inputs["x"].reshape(-1, N), p.inputs["dy"].reshape(-1, N)
    gain = p.inputs.get("w", np.ones(N))
    right = _Pass(x, gain, true_dy, case.eps)
    used = true_dy if dy is None else dy(true_dy.shape)
    mean = right.mean
    rstd = right.rstd if eps is None else 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    if swapped:
        mean, rstd = rstd, mean
    saved_matrix = {
        "x": x,
        "dy": true_dy,
        "xhat": right.xhat,
        "y": round_values(right.xhat * gain + p.inputs.get("b", 0.0), case.dtype),
    }[saved]
    xhat, wdy = (saved_matrix - mean) * rstd, (gain if w == "w" else 1.0) * used
    dx = (wdy - xhat * right.mean_of(xhat * wdy) - right.mean_of(wdy)) * rstd
    if case.then == "residual":
        dx = dx + true_dy
    gradients = {"dx": dx, "dw": (used * xhat).sum(axis=0), "db": used.sum(axis=0)}
    if dtype:
        gradients = {name: round_values(values, dtype) for name, values in gradients.items()}
    return {name: gradients[name].reshape(want.values.shape) for name, want in p.expected.items()}


def _return_wrongly(
    p: Plan[WiringCase], change: Callable[[Gradients, WiringCase], Gradients]
) -> Outputs:
    """Return the outputs if backward returns right gradients in a wrong way.

    ``change`` makes the returned gradients from the right ones and the case; None stands for a
    missing one.
    """
    if p.case.then == "change":
        return {"raised": np.array(1.0)}
    case = p.case
    x, dy = p.inputs["x"].reshape(-1, case.N), p.inputs["dy"].reshape(-1, case.N)
    right: Gradients = {**_Pass(x, p.inputs.get("w"), dy, case.eps).gradients()}
    returned = change(right, case)
    outputs = {}
    for name, want in p.expected.items():
        value = returned[name]
        if case.then == "residual" and name == "dx":
            value = dy if value is None else value + dy
        outputs[name] = (
            np.full(want.values.shape, np.nan)
            if value is None
            else value.reshape(want.values.shape)
        )
    return outputs


def _overwrite_dy(p: Plan[WiringCase]) -> Outputs:
    """Return the outputs if dx is written over dy: the residual path adds dx to itself, and a
    second pass reads dx as dy."""
    case = p.case
    if case.then == "change":
        return {"raised": np.array(1.0)}
    x, dy = p.inputs["x"].reshape(-1, case.N), p.inputs["dy"].reshape(-1, case.N)
    gradients = _Pass(x, p.inputs.get("w"), dy, case.eps).gradients()
    if case.then == "twice":
        gradients = _Pass(x, p.inputs.get("w"), gradients["dx"], case.eps).gradients()
    if case.then == "residual":
        gradients["dx"] = 2 * gradients["dx"]
    return {name: gradients[name].reshape(want.values.shape) for name, want in p.expected.items()}


# causes that follow from the set of failing cases
_RARE: tuple[tuple[str, Symptom[WiringCase]], ...] = (
    ("change_unnoticed", lambda p, outputs: p.case.then == "change"),
)

_NOT_RETURNED: dict[str, str] = dict.fromkeys(("dx", "dw", "db"), "gradient_missing")

PARTS = {
    "forward": Part(FORWARD, _plan_forward, _list_forward_models),
    "backward": Part(
        BACKWARD, _plan_backward, _list_backward_models, rare=_RARE, unwritten=_NOT_RETURNED
    ),
}
