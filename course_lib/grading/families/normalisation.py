"""LayerNorm and RMSNorm in PyTorch operations: the inputs that find their bugs, and their wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib import reference
from course_lib.grading.buffers import Tensor, contiguous, rounded
from course_lib.grading.cases import Case
from course_lib.grading.making import expect, inverse_root, matrix, weight
from course_lib.grading.plan import Model, Outputs, Part, Plan

_COMMON = (
    Case("worked example", 3, 8, 0, "the 3 x 8 matrix of lesson 01", fill="worked"),
    Case("three dimensions", 6, 10, 0, "x has shape (B, T, C): only C is normalised", leading=(2, 3), mean=2.0),
    Case("four dimensions", 8, 5, 0, "two more leading dimensions", leading=(2, 1, 4), mean=-1.0),
    Case("one vector", 1, 12, 0, "x has one dimension", vector=True, mean=3.0),
    Case("square", 7, 7, 0, "M = N: no shape tells rows from columns", mean=1.0),
    Case("one row", 1, 33, 0, "M = 1", mean=1.0),
    Case("one column", 5, 1, 0, "N = 1"),
    Case("tiny eps", 3, 96, 0, "std 0.03, eps = 1e-12", std=0.03, eps=1e-12),
    Case("large eps", 3, 100, 0, "std 0.03: eps = 0.1 rules the result", std=0.03, eps=0.1),
    Case("fp16, std 100", 2, 2500, 0, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case("fp16, mean 8", 2, 1025, 0, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5),
    Case("bf16", 3, 127, 0, "bfloat16 in and out, mean 3", dtype="bf16", mean=3.0),
    Case("fp32 weights", 4, 33, 0, "x in fp16, w in fp32: y has x's dtype", dtype="fp16", w_dtype="fp32"),
    Case("sliced", 4, 50, 0, "x is a slice of a wider matrix", mean=2.0, layout="sliced"),
    Case("a NaN row", 4, 19, 0, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
)
LAYER_NORM = (
    *_COMMON,
    Case("constant row", 2, 20, 0, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 10000", 2, 768, 0, "the mean is 10000 times the spread", mean=1e4),
)
RMS_NORM = (
    *_COMMON,
    Case("near zero", 3, 100, 0, "values around 0.003: where eps stands decides the result", std=0.003),
    Case("zero row", 2, 20, 0, "every element is 0: y is 0, not NaN", fill="constant", mean=0.0),
)


def _layer_norm(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    w_dtype = case.w_dtype or case.dtype
    x, w, b = matrix(case, rng), weight(case.N, w_dtype, rng), rounded(rng.normal(size=case.N), w_dtype)
    with np.errstate(invalid="ignore"):
        want = reference.layer_norm(x, w, b, case.eps)
        scale = 1 + np.abs(want.mean) * want.rstd
        terms = scale[:, None] * np.abs(w.astype(np.float64)) + np.abs(b.astype(np.float64)) + np.abs(want.y)
    return _plan(case, entry_point, x, {"w": w, "b": b}, want.y, terms)


def _rms_norm(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    x, w = matrix(case, rng), weight(case.N, case.w_dtype or case.dtype, rng)
    with np.errstate(invalid="ignore"):
        want = reference.rms_norm(x, w, case.eps).y
        terms = np.abs(w.astype(np.float64)) + np.abs(want)
    return _plan(case, entry_point, x, {"w": w}, want, terms)


def _plan(case: Case, entry_point: str, x: np.ndarray, vectors: dict[str, np.ndarray], y: np.ndarray, terms: np.ndarray) -> Plan:
    shape = (case.N,) if case.vector else (*(case.leading or (case.M,)), case.N)
    strides = (case.N + 3, 1) if case.layout == "sliced" else contiguous(shape)
    expected = expect(y, terms, case.dtype)
    tensors = (
        Tensor("x", case.dtype, shape, strides, x.reshape(shape)),
        *(Tensor(name, case.w_dtype or case.dtype, (case.N,), (1,), values) for name, values in vectors.items()),
        Tensor("y", case.dtype, shape, contiguous(shape)),
    )
    arguments = [("tensor", name) for name in ("x", *vectors)] + [("float", case.eps)]
    inputs = {"x": x.astype(np.float64)} | {name: values.astype(np.float64) for name, values in vectors.items()}
    reshaped = type(expected)(expected.values.reshape(shape), expected.allowed.reshape(shape))
    return Plan(case, entry_point, (), tensors, tuple(arguments), {}, {"y": reshaped}, inputs=inputs)


def _layer_norm_models() -> Iterator[tuple[str, Model]]:
    yield "unbiased_variance", lambda p: _wrong_layer_norm(p, correction=1)
    yield from _eps_models(_wrong_layer_norm)
    yield "divisor", lambda p: _wrong_layer_norm(p, correction=p.case.N - 1)
    yield "w_ignored", lambda p: _wrong_layer_norm(p, w=1.0)
    yield "b_ignored", lambda p: _wrong_layer_norm(p, b=0.0)
    yield "w_twice", lambda p: _wrong_layer_norm(p, w=p.inputs["w"] ** 2)
    yield "mean_not_subtracted", lambda p: _wrong_layer_norm(p, centre=0.0)
    yield "wrong_axis", lambda p: _wrong_layer_norm(p, axis=0)
    yield "wrong_axis", lambda p: _wrong_layer_norm(p, axis=(0, 1))


def _rms_norm_models() -> Iterator[tuple[str, Model]]:
    yield from _eps_models(_wrong_rms_norm)
    yield "divisor", lambda p: _wrong_rms_norm(p, divide=False)
    yield "w_ignored", lambda p: _wrong_rms_norm(p, w=1.0)
    yield "w_twice", lambda p: _wrong_rms_norm(p, w=p.inputs["w"] ** 2)
    yield "mean_subtracted", lambda p: _wrong_rms_norm(p, centre=True)
    yield "wrong_axis", lambda p: _wrong_rms_norm(p, axis=0)
    yield "wrong_axis", lambda p: _wrong_rms_norm(p, axis=(0, 1))


def _eps_models(wrong: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    yield "eps_missing", lambda p: wrong(p, eps=0.0)
    yield "eps_outside", lambda p: wrong(p, root=lambda v, eps: 1 / (np.sqrt(v) + eps))
    for fixed in (1e-5, 1e-6, 1e-8, 1e-12):
        yield "eps_hard_coded", lambda p, fixed=fixed: wrong(p, eps=fixed)
    yield "root_missing", lambda p: wrong(p, root=lambda v, eps: 1 / (v + eps))


def _wrong_layer_norm(p: Plan, *, correction=0, eps=None, root=inverse_root, w=None, b=None, centre=None, axis=-1) -> Outputs:
    x, eps = _rows(p, axis), p.case.eps if eps is None else eps
    mean = x.mean(axis=axis, keepdims=True)
    count = x.size // mean.size
    var = ((x - mean) ** 2).sum(axis=axis, keepdims=True) / np.float64(count - correction)
    y = (x - (mean if centre is None else centre)) * root(var, eps)
    return _y(p, y * (p.inputs["w"] if w is None else w) + (p.inputs["b"] if b is None else b))


def _wrong_rms_norm(p: Plan, *, divide=True, eps=None, root=inverse_root, w=None, centre=False, axis=-1) -> Outputs:
    x, eps = _rows(p, axis), p.case.eps if eps is None else eps
    x = x - x.mean(axis=-1, keepdims=True) if centre else x
    square = (x**2).mean(axis=axis, keepdims=True) if divide else (x**2).sum(axis=axis, keepdims=True)
    return _y(p, x * root(square, eps) * (p.inputs["w"] if w is None else w))


def _rows(p: Plan, axis) -> np.ndarray:
    """x as the mistake sees it: over the whole of it as (M, N), over one axis in its own shape."""
    return p.inputs["x"] if isinstance(axis, tuple) else p.inputs["x"].reshape(p.tensor("y").shape)


def _y(p: Plan, y: np.ndarray) -> Outputs:
    return {"y": y.reshape(p.tensor("y").shape)}


EXERCISES = {
    "01a": (Part(LAYER_NORM, _layer_norm, _layer_norm_models),),
    "01b": (Part(RMS_NORM, _rms_norm, _rms_norm_models),),
}
