"""What holds of a norm for every input: of the float64 reference, of the public functions, and of
what a submission returns.

LayerNorm does not see a shift of x, either norm nearly none of a scale (none at all if eps grows
with its square), rows are nobody's business but their own, a VJP is linear in dy, LayerNorm's dx is
orthogonal to 1 and both norms' nearly to xhat, dw and db add up over the rows.

The battery of the grader has no such cases, because they would decide nothing that it does not
decide already. It compares every element with float64, and float64 has the properties to 1e-9
(shown here first); two outputs that are within their allowed errors therefore have them within the
sum of these. What breaks a property is wrong in an element for one of the related inputs, and an
element names its row and column, which a property does not. The converse does not hold: a w
forgotten, an rstd too much, an eps of one's own break nothing. Properties are for where the right
answer is not known; here it is. Whether the battery's own inputs show every wrong formula that
these inputs show is a question for mutants: of 276 in the exercises below, 101 broke a property and
175 did not when they were counted, and the battery refused all of them, as
tests/grading/test_grading.py does. The last two tests name some mutants of either kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import course_lib
from course_lib import catalog
from course_lib.catalog import Exercise, mutants, texts
from course_lib.grading.cases.plan import Plan
from course_lib.grading.execution import runner
from course_lib.grading.judging.judge import judge
from course_lib.grading.plans import make_plans
from course_lib.grading.submission.attempt import extract
from course_lib.norms import functional, reference

# ---- the reference and the public functions

Forward = Callable[..., np.ndarray]
Backward = Callable[..., tuple[np.ndarray, ...]]


def _public(norm: str):
    def tensors(*given):
        return [
            torch.tensor(
                np.asarray(a), dtype=torch.float32, device=course_lib.DEVICE, requires_grad=True
            )
            for a in given
        ]

    def call(x, w, b, eps):
        shape = (x.shape[1],)
        return (
            functional.layer_norm(x, shape, w, b, eps)
            if norm == "layer_norm"
            else functional.rms_norm(x, shape, w, eps)
        )

    def forward(x, w, b, eps):
        return call(*tensors(x, w, b), eps).detach().double().cpu().numpy()

    def vjp(dy, x, w, eps):
        given = tensors(x, w, np.zeros(x.shape[1]))
        call(*given, eps).backward(torch.tensor(dy, dtype=torch.float32, device=course_lib.DEVICE))
        return tuple(t.grad.double().cpu().numpy() for t in given if t.grad is not None)

    return forward, vjp


IMPLEMENTATIONS: dict[str, tuple[bool, Forward, Backward, float]] = {
    "reference LayerNorm": (
        True,
        lambda x, w, b, eps: reference.layer_norm(x, w, b, eps).y,
        reference.layer_norm_vjp,
        1e-9,
    ),
    "reference RMSNorm": (
        False,
        lambda x, w, b, eps: reference.rms_norm(x, w, eps).y,
        reference.rms_norm_vjp,
        1e-9,
    ),
    "public LayerNorm": (True, *_public("layer_norm"), 2e-5),
    "public RMSNorm": (False, *_public("rms_norm"), 2e-5),
}
AWKWARD = [(1, 1), (3, 1), (1, 2), (5, 17), (2, 129), (7, 100)]


def near(got: np.ndarray, want: np.ndarray, tolerance: float, scale: float = 0.0) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0.0) <= tolerance * max(
        1.0, scale, float(np.abs(want).max(initial=0.0))
    )


def holds(
    name: str,
    x: np.ndarray,
    dy: np.ndarray,
    other: np.ndarray,
    w: np.ndarray,
    eps: float,
    c: float,
    s: float,
    k: int,
) -> None:
    """Every property of one implementation. ``c`` shifts, ``s`` scales, rows are cut before row
    ``k``; both x + c and s x are exact."""
    shifts, forward, vjp, tolerance = IMPLEMENTATIONS[name]
    b = w[::-1].copy()
    y = forward(x, w, b, eps)
    rstd = 1 / np.sqrt((x.var(axis=1) if shifts else (x**2).mean(axis=1)) + eps)
    # what a rounding of x can do to y
    steep = float(rstd.max()) * (1 + np.abs(x).max() + abs(c)) * np.abs(w).max()
    if shifts:
        near(forward(x + c, w, b, eps), y, tolerance, steep)
    near(forward(s * x, w, b, s * s * eps), y, tolerance, steep)
    turned = np.arange(len(x))[::-1]
    near(forward(x[turned], w, b, eps), y[turned], tolerance)

    one = vjp(dy, x, w, eps)
    two = vjp(other, x, w, eps)
    both = vjp(2 * dy + other, x, w, eps)
    parts = vjp(dy[turned], x[turned], w, eps)
    size = (
        float((np.abs(dy) + np.abs(other)).max() * steep * (1 + rstd.max()) * len(x)) * x.shape[1]
    )
    for first, second, sum_of_both in zip(one, two, both, strict=True):
        near(sum_of_both, 2 * first + second, tolerance, size)
    near(parts[0], one[0][turned], tolerance, size)
    for whole, again, top, bottom in zip(
        one[1:],
        parts[1:],
        vjp(dy[:k], x[:k], w, eps)[1:],
        vjp(dy[k:], x[k:], w, eps)[1:],
        strict=True,
    ):
        near(again, whole, tolerance, size)
        near(top + bottom, whole, tolerance, size)
    mean = x.mean(axis=1, keepdims=True) if shifts else 0.0
    xhat = (x - mean) * rstd[:, None]
    if shifts:
        near(one[0].sum(axis=1), np.zeros(len(x)), tolerance, size)
    # what eps lets through along xhat
    leak = x.shape[1] * (xhat * w * dy).mean(axis=1) * eps * rstd**3
    near((one[0] * xhat).sum(axis=1), leak, tolerance, size * np.sqrt(x.shape[1]))


# quarters: a shift by a whole number and a scale by a power of two are then exact in fp32
quarters = st.integers(-80, 80).map(lambda n: n / 4)


@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name.startswith("reference")])
@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    eps=st.sampled_from([1e-5, 1e-3, 0.1, 1.0]),
    c=st.integers(-64, 64),
    s=st.sampled_from([0.25, 2.0, 32.0]),
)
def test_the_reference_has_the_properties(name, data, eps, c, s):
    shape = data.draw(st.tuples(st.integers(2, 5), st.integers(1, 9)))
    x, dy, other = (data.draw(arrays(np.float64, shape, elements=quarters)) for _ in range(3))
    w = data.draw(arrays(np.float64, shape[1], elements=quarters))
    holds(name, x, dy, other, w, eps, float(c), s, data.draw(st.integers(1, shape[0] - 1)))


@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name.startswith("reference")])
def test_without_eps_a_scale_is_not_seen(name):
    rng = np.random.default_rng(0)
    x, w = rng.normal(2.0, size=(3, 7)), rng.normal(size=7)
    _, forward, _, _ = IMPLEMENTATIONS[name]
    exact = forward(x, w, w, 0.0)
    near(forward(1e-3 * x, w, w, 0.0), exact, 1e-9)
    seen = [
        np.abs(forward(1e-3 * x, w, w, eps) - exact).max() for eps in (1e-6, 1e-8, 1e-10, 1e-12)
    ]
    assert seen == sorted(seen, reverse=True) and seen[0] > 0.05 and seen[-1] < 1e-4


@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name.startswith("public")])
@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_the_public_functions_have_the_properties(name, shape):
    rng = np.random.default_rng(shape[1])
    x, dy, other = (np.round(4 * rng.normal(0.5, 2.0, size=shape)) / 4 for _ in range(3))
    holds(
        name,
        x,
        dy,
        other,
        rng.choice([-1.5, 0.5, 2.0], size=shape[1]),
        2.0**-10,
        4.0,
        2.0,
        shape[0] // 2,
    )


# ---- submissions

FORWARD = ("01a", "02a", "07a", "08a", "02b")
BACKWARD = ("10a", "10b", "10c", "11a", "11b", "13b")
CENTRED = {"01a", "07a", "08a", "10a", "11a", "13b"}
_TOLERANCE = 1e-4
_EPS = 0.25  # so large that where it stands shows


def base(exercise: Exercise) -> Plan:
    """A case with nothing special to it, its inputs rounded to quarters."""
    part = [
        p
        for p in make_plans(exercise)
        if p.case.fill == "normal" and p.case.dtype == "fp32" and not p.case.w_dtype
    ]
    plan = next(
        p
        for p in part
        if p.case.layout == "packed"
        and p.case.M >= 4
        and p.case.N >= 7
        and p.case.std == 1
        and not p.case.leading
    )
    rounded = {
        name: np.round(4 * plan.inputs[name]) / 4 for name in ("x", "dy") if name in plan.inputs
    }
    return given_to(plan, **rounded)


def given_to(plan: Plan, **values: np.ndarray) -> Plan:
    """The plan with other values in some of its inputs, and in the saved statistics what belongs to
    x."""
    inputs = plan.inputs | values
    x = inputs["x"]
    if "rstd" in inputs:
        centred = "mean" in inputs
        mean, square = x.mean(axis=1), x.var(axis=1) if centred else (x**2).mean(axis=1)
        inputs |= {"rstd": 1 / np.sqrt(square + plan.case.eps)} | (
            {"mean": mean} if centred else {}
        )
    tensors = tuple(
        dataclasses.replace(t, values=inputs[t.name].reshape(t.shape).astype(t.values.dtype))
        if t.name in inputs
        else t
        for t in plan.tensors
    )
    return dataclasses.replace(plan, tensors=tensors, inputs=inputs, interleavings=0, reads={})


def with_eps(plan: Plan, eps: float) -> Plan:
    return dataclasses.replace(
        plan,
        arguments=tuple(eps if isinstance(value, float) else value for value in plan.arguments),
    )


def related(exercise: Exercise) -> dict[str, Plan]:
    """The plans of which outputs are compared, by what is different in each."""
    plan = base(exercise)
    x, turned = plan.inputs["x"], np.arange(plan.case.M)[::-1]
    if exercise.id in FORWARD:
        made = {
            "as it is": plan,
            "shifted": given_to(plan, x=x + 4),
            "turned": given_to(plan, x=x[turned]),
        }
        made = {what: with_eps(one, _EPS) for what, one in made.items()}
        return made | {"scaled": with_eps(given_to(plan, x=2 * x), 4 * _EPS)}
    made = {"as it is": plan}
    dy = plan.inputs["dy"]
    other = np.roll(dy, (1, 3), axis=(0, 1)) + 1
    top = np.arange(plan.case.M)[:, None] < plan.case.M // 2
    made |= {"other dy": given_to(plan, dy=other), "both": given_to(plan, dy=2 * dy + other)}
    made |= {"top": given_to(plan, dy=dy * top), "bottom": given_to(plan, dy=dy * ~top)}
    made["turned"] = given_to(plan, x=x[turned], dy=dy[turned])
    return made


def returned(exercise: Exercise, text: str) -> dict[str, dict[str, np.ndarray]] | None:
    """What the submission returns for each of the related plans; partial sums are added up. None if
    it cannot be run."""
    kernel, asked = exercise.kind == "kernel", related(exercise)
    taken = extract(exercise, text, "mine.py")
    run = runner.run(taken, list(asked.values()), course_lib.MODE if kernel else exercise.kind)
    if run.ended != "finished" or len(run.data) < len(asked):
        return None
    outputs = {}
    for n, (what, plan) in enumerate(asked.items()):
        found = judge(plan, run.data[n]).outputs
        outputs[what] = {
            name: values.sum(axis=0) if name.endswith("_partial") else values
            for name, values in found.items()
        }
    return outputs


def broken(exercise: Exercise, text: str) -> set[str]:
    """The properties that the submission's outputs do not have."""
    told = returned(exercise, text)
    if told is None:
        return {"it cannot be run"}
    plan = base(exercise)
    plain = told["as it is"]
    found = set()

    finite = [values[np.isfinite(values)] for values in plain.values()]
    size = max(1.0, *(np.abs(values).max(initial=0.0) for values in finite))

    def compare(what: str, got: np.ndarray, want: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            if not np.abs(got - want).max() <= _TOLERANCE * size:  # a NaN is not, either
                found.add(what)

    if exercise.id in FORWARD:
        if exercise.id in CENTRED:
            compare("shift", told["shifted"]["y"], plain["y"])
        compare("scale", told["scaled"]["y"], plain["y"])
        compare("rows", told["turned"]["y"][::-1], plain["y"])
        return found
    for name in plain:
        compare("linear", told["both"][name], 2 * plain[name] + told["other dy"][name])
        compare(
            "rows",
            told["turned"][name][::-1] if name == "dx" else told["turned"][name],
            plain[name],
        )
        compare("additive", told["top"][name] + told["bottom"][name], plain[name])
    if "dx" in plain:
        x, w, rstd = plan.inputs["x"], plan.inputs["w"], plan.inputs["rstd"]
        xhat = (x - (x.mean(axis=1, keepdims=True) if exercise.id in CENTRED else 0.0)) * rstd[
            :, None
        ]
        if exercise.id in CENTRED:
            compare("orthogonal to 1", plain["dx"].sum(axis=1), np.zeros(len(x)))
        leak = x.shape[1] * (xhat * w * plan.inputs["dy"]).mean(axis=1) * plan.case.eps * rstd**3
        compare("orthogonal to xhat", (plain["dx"] * xhat).sum(axis=1), leak)
    return found


@pytest.mark.parametrize("exercise_id", FORWARD + BACKWARD)
def test_a_solution_returns_what_has_the_properties(exercise_id):
    exercise = catalog.get(exercise_id)
    assert broken(exercise, texts.read_solution(exercise)) == set()


# the first mutant of a cause, and a property that its formula cannot have
BREAKS = (
    ("01a", "mean_not_subtracted", "shift"),
    ("01a", "root_missing", "scale"),
    ("07a", "mean_not_subtracted", "shift"),
    ("07a", "padding_in_variance", "shift"),
    ("08a", "eps_outside", "scale"),
    ("02b", "root_missing", "scale"),
    ("10a", "dy_ignored", "linear"),
    ("10a", "c2_missing", "orthogonal to 1"),
    ("10a", "c1_missing", "orthogonal to xhat"),
    ("10c", "rows_not_summed", "rows"),
    ("11a", "c2_missing", "orthogonal to 1"),
    ("11b", "c1_missing", "orthogonal to xhat"),
)


def break_first_of(exercise_id: str, cause: str) -> set[str]:
    """The properties that the first mutant with this cause does not have."""
    exercise = catalog.get(exercise_id)
    return broken(
        exercise,
        mutants.make_text(
            exercise,
            next(entry for entry in mutants.read_mutants(exercise) if entry["cause"] == cause),
        ),
    )


@pytest.mark.parametrize(
    ("exercise_id", "cause", "named"), BREAKS, ids=["-".join(entry) for entry in BREAKS]
)
def test_some_mutants_break_a_property(exercise_id, cause, named):
    assert named in break_first_of(exercise_id, cause)


@pytest.mark.parametrize(
    ("exercise_id", "cause"),
    [("08a", "w_ignored"), ("08a", "eps_hard_coded"), ("11a", "rstd_in_dx"), ("10a", "w_twice")],
)
def test_some_mutants_break_none(exercise_id, cause):
    assert break_first_of(exercise_id, cause) == set()
