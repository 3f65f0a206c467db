"""Buffers, tolerance and judging: what a byte out of place looks like to the parent."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.exercises import find_parts
from course_lib.grading.cases.buffers import DTYPES, Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging import evidence
from course_lib.grading.judging.elements import Element
from course_lib.grading.judging.judge import Judged, judge
from course_lib.grading.plans import make_plans

layouts = st.tuples(
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(0, 5),
    st.sampled_from([dtype for dtype in DTYPES if not dtype.startswith("int")]),
    st.booleans(),
)


def tensor(layout, seed=0) -> Tensor:
    M, N, gap, dtype, is_output = layout
    values = None if is_output else round_to(np.random.default_rng(seed).normal(size=(M, N)), dtype)
    return Tensor("t", dtype, (M, N), (N + gap, 1), values, guard=size_guard(70))


@settings(deadline=None)
@given(layouts)
def test_a_tensor_survives_the_journey(layout):
    made = tensor(layout)
    data = made.initial_bytes()
    assert len(data) == made.nbytes and not made.find_changed_outside(data).size
    if made.is_output:
        with np.errstate(invalid="ignore"):  # NumPy warns of a signalling NaN that it widens
            assert (
                made.find_unwritten(data).all()
                and np.isnan(made.read(data).astype(np.float64)).all()
            )
    else:
        assert (made.read(data) == made.values).all() and not made.find_unwritten(data).any()


@settings(deadline=None)
@given(layouts, st.data())
def test_a_write_outside_is_found_where_it_happened(layout, draw):
    made = tensor(layout)
    M, N, gap, _, _ = layout
    inside = {r * (N + gap) + c for r in range(M) for c in range(N)}
    position = draw.draw(
        st.integers(-made.guard, made.elements - made.guard - 1).filter(lambda p: p not in inside)
    )
    data = bytearray(made.initial_bytes())
    data[(made.guard + position) * DTYPES[made.dtype].itemsize] ^= 1
    assert made.find_changed_outside(bytes(data)).tolist() == [position]


def the_plan(exercise_id="07a", name="padded, mean 3") -> Plan:
    return next(plan for plan in make_plans(catalog.get(exercise_id)) if plan.case.name == name)


def answered(plan: Plan, **changes) -> Judged:
    """The case judged as if a kernel had answered the expected values, with ``changes`` put in
    their place."""
    data = b""
    for t in plan.tensors:
        buffer = np.frombuffer(bytearray(t.initial_bytes()), dtype=DTYPES[t.dtype])
        if t.name in changes:
            t.view(buffer)[...] = changes[t.name].astype(DTYPES[t.dtype])
        elif t.is_output:
            t.view(buffer)[...] = plan.expected[t.name].values.astype(DTYPES[t.dtype])
        data += buffer.tobytes()
    return judge(plan, data)


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_the_rounded_truth_passes_every_case(exercise):
    for plan in make_plans(exercise):
        judged = answered(plan)
        assert judged.passed and judged.ratio <= 1, (plan.case.name, judged.deviations)


@pytest.mark.parametrize("times", [0.9, 1.1, 50.0])
def test_the_ratio_is_that_of_the_allowed_error(times):
    plan = the_plan()
    y = plan.expected["y"].values.copy()
    y[2, 5] += times * plan.expected["y"].allowed[2, 5]
    judged = answered(plan, y=y)
    assert judged.passed == (times < 1) and judged.ratio == pytest.approx(times, rel=0.02)
    if times > 1:
        (deviation,) = judged.deviations
        assert (deviation.output, deviation.kind, deviation.count, deviation.where) == (
            "y",
            Element.OFF,
            1,
            ((2, 5),),
        )


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_a_wrong_element_is_seen_beside_elements_that_may_not_be_off_at_all(exercise):
    """Where no error is allowed, a right element's share of it is 0 / 0."""
    for plan in make_plans(exercise):
        # what is worked out from these is nobody's to get wrong
        returned = {tensor.name for tensor in plan.tensors}
        for name, expected in (
            (name, plan.expected[name]) for name in plan.expected if name in returned
        ):
            movable = np.isfinite(expected.values) & np.isfinite(expected.allowed)
            values = np.array(expected.values, float)
            if not movable.any() or DTYPES[plan.tensor(name).dtype].kind == "i":
                continue
            at = tuple(np.argwhere(movable)[-1])
            values[at] += 1.0 + 8 * abs(values[at]) + 100 * expected.allowed[at]
            if plan.tensor(name).dtype == "fp16" and abs(values[at]) > 6e4:
                continue
            assert not answered(plan, **{name: values}).passed, (plan.case.name, name)


def test_a_nan_where_a_number_belongs_and_a_number_where_a_nan_belongs():
    plan = the_plan()
    y = plan.expected["y"].values.copy()
    y[0, 1] = np.nan
    assert [d.kind for d in answered(plan, y=y).deviations] == [Element.WRONG_KIND]
    bad_row = the_plan(name="a NaN row")
    y = bad_row.expected["y"].values.copy()
    y[0, 4] = 0.0
    assert [(d.kind, d.where) for d in answered(bad_row, y=y).deviations] == [
        (Element.WRONG_KIND, ((0, 4),))
    ]


@pytest.mark.parametrize(
    ("value", "passes"), [(np.inf, True), (-np.inf, True), (np.nan, True), (1.0, False)]
)
def test_a_row_with_an_inf_may_end_as_inf_or_nan_but_not_as_a_number(value, passes):
    plan = the_plan(name="an Inf row")
    y = plan.expected["y"].values.copy()
    y[1] = value
    assert answered(plan, y=y).passed == passes


def test_a_changed_input_is_counted():
    plan = the_plan()
    x = plan.tensor("x").values.copy()
    x[3, :2] += 1
    assert answered(plan, x=x).changed == {"x": 2}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    first, again, other = (
        make_plans(catalog.get("08a"), seed)[1].tensor("x").initial_bytes() for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_a_battery_is_worth_its_name(exercise):
    """Every case says why it is there; names are unique; the shapes are not the comfortable
    ones."""
    battery = [plan.case for plan in make_plans(exercise)]
    assert len({case.name for case in battery}) == len(battery) and all(
        case.why for case in battery
    )
    if exercise.kind == "tests" or any(part.time for part in find_parts(exercise).values()):
        # whoever writes a test chooses its shapes and dtypes; nobody tunes a launch for one column
        return
    small = any(case.N == 1 for case in battery)
    asked = (
        {"fp32"} if "All tensors are fp32" in texts.read_solution(exercise) else {"fp32", "fp16"}
    )
    assert (small and {case.dtype for case in battery} >= asked) or any(
        "empty" in case.fill for case in battery
    )
    if exercise.kind == "kernel":
        assert any(case.padded_lanes for case in battery)
        assert all(
            case.block & (case.block - 1) == 0 and case.rows & (case.rows - 1) == 0
            for case in battery
        )


def test_a_case_is_described_by_shape_dtype_and_reason():
    case = Case("c", 5, 17, 8, "7 padded lanes", dtype="fp16", rows=2)
    assert case.describe() == "M = 5, N = 17, BLOCK = 8, ROWS = 2, fp16: 7 padded lanes"
    assert (
        dataclasses.replace(case, vector=True, M=1, rows=1).describe()
        == "n = 17, BLOCK = 8, fp16: 7 padded lanes"
    )


# ---- a multiple of the right result


def judge_multiples(factor) -> list[Judged]:
    """Row sums, each times what ``factor`` says of its case; those that are wrong."""
    plans = [
        p
        for p in make_plans(catalog.get("06a"))
        if not (p.case.is_far or p.case.has_bad_row or p.sample)
    ]
    judged = [answered(plan, y=plan.expected["y"].values * factor(plan.case)) for plan in plans]
    return [j for j in judged if not j.passed]


@pytest.mark.parametrize("factor", [2.0, -1.0, 0.5, 1.01])
def test_a_fixed_factor_is_evidence(factor):
    assert evidence.is_of_factor(judge_multiples(lambda case: factor))


@pytest.mark.parametrize(
    "factor",
    [
        lambda case: 0.0,
        lambda case: 1 / case.N,
        lambda case: case.M,
        lambda case: np.where(np.arange(case.M), 1.0, 2.0),
    ],
)
def test_another_factor_in_each_case_or_row_is_none_and_nor_is_zero(factor):
    assert not evidence.is_of_factor(judge_multiples(factor))


def test_one_case_alone_has_a_factor_by_chance():
    assert not evidence.is_of_factor(judge_multiples(lambda case: 2.0)[:1])
