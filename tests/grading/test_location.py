"""The line that a verdict shows: the cause's own where code of its form feeds the wrong output,
else the one where the error comes out."""

from __future__ import annotations

import difflib
import functools
import time
from dataclasses import replace

import numpy as np
import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import mutants, texts
from course_lib.grading.cases.buffers import DTYPES
from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging import known_lines, wording
from course_lib.grading.judging.judge import Judged, judge
from course_lib.grading.plans import make_plans
from course_lib.grading.verdict import Place
from course_lib.launching.faults import Fault, FaultKind


@functools.cache
def find_plan(exercise_id: str, output: str) -> Plan:
    plans = make_plans(catalog.get(exercise_id))
    return next(
        plan for plan in plans if output in plan.expected and plan.expected[output].values.size
    )


def judge_as_wrong(plan: Plan, output: str) -> Judged:
    """The case as if ``output`` came out twice as large and shifted, and all else right."""
    data = b""
    for tensor in plan.tensors:
        buffer = np.frombuffer(bytearray(tensor.initial_bytes()), dtype=DTYPES[tensor.dtype])
        if tensor.name in plan.expected:
            wanted = plan.expected[tensor.name].values
            tensor.view(buffer)[...] = (2 * wanted + 1 if tensor.name == output else wanted).astype(
                buffer.dtype
            )
        data += buffer.tobytes()
    return judge(plan, data)


def find_place(exercise_id: str, output: str, cause: str, text: str) -> Place | None:
    judged = judge_as_wrong(find_plan(exercise_id, output), output)
    assert [deviation.output for deviation in judged.deviations] == [output]
    return wording.find_place(judged, cause, "mine.py", text, catalog.get(exercise_id))


def find_edited_lines(old: str, new: str) -> set[int]:
    steps = difflib.SequenceMatcher(
        None, old.split("\n"), new.split("\n"), autojunk=False
    ).get_opcodes()
    return {
        line + 1
        for what, _, _, start, end in steps
        if what != "equal"
        for line in range(start, end)
    }


LOCATED = """01a y wrong_axis mean_over_the_first_dimension | 01a y eps_missing no_eps | 01a y eps_outside eps_after_the_root
    01a y root_missing no_root | 01a y divisor length_of_x | 01a y b_ignored b_forgotten | 01b y cancellation one_pass
    01b y divisor variance_not_divided | 01b y bad_row_swallowed nan_swallowed | 01b y eps_hard_coded eps_1e-5 | 01b y w_for_b b_from_w_ptr
    01b y reciprocal_missing multiplied_by_the_root | 02b y max_for_sum largest_square | 06a y low_precision accumulators_in_fp16
    06a y tail_left_out full_blocks_only | 06a y block_not_accumulated last_block_only | 07a y mask_missing other_is_one
    07a y another_dtype b_in_the_dtype_of_w | 08a y padding_in_variance unmasked_variance | 10a dx w_missing_in_dx w_forgotten
    10a dx xhat_wrong x_for_xhat | 10a dx dy_ignored dy_ignored | 11a dx c1_of_dy c1_of_dy | 11a dx c2_of_dy c2_of_dy
    11a dx vjp_divisor c2_divided_by_block | 11a dx rstd_misread rstd_taken_for_the_variance | 13b dx partly_written tiles_by_floor
    14a dx eps_not_kept statistics_anew_with_a_fixed_eps""".replace("\n", " | ")  # noqa: E501
LOCATED = [entry.split() for entry in LOCATED.split("|") if entry.strip()]


@pytest.mark.parametrize(
    ("exercise_id", "output", "cause", "mutant"),
    LOCATED,
    ids=["-".join(entry) for entry in LOCATED],
)
def test_the_line_of_the_cause_is_found(exercise_id, output, cause, mutant):
    exercise = catalog.get(exercise_id)
    entry = next(entry for entry in mutants.read_mutants(exercise) if entry["id"] == mutant)
    text = mutants.make_text(exercise, entry)
    place = find_place(exercise_id, output, cause, text)
    assert place.line in find_edited_lines(texts.read_solution(exercise), text), place
    assert (place.label, place.lead) == ("", "")


@pytest.mark.parametrize(
    "cause",
    [
        "divisor",
        "eps_missing",
        "bad_row_swallowed",
        "w_for_b",
        "max_for_sum",
        "deviation_not_squared",
    ],
)
def test_without_code_of_the_causes_form_only_the_symptom_is_shown(cause):
    """The solution divides by N, has eps under its root, and so on: nothing in it is claimed."""
    text = texts.read_solution(catalog.get("01b")).replace(
        "tl.rsqrt(var + eps)", "(var + eps) ** -0.5"
    )
    place = find_place("01b", "y", cause, text)
    assert (place.label, place.lead) == (
        "y is stored here",
        "The error shows here:",
    ) and "tl.store(y_ptr" in place.source


def test_a_statement_of_the_solution_is_not_marked():
    """The rule of cancellation takes the line of the variance, which is right here."""
    text = texts.read_solution(catalog.get("01b"))
    place = find_place("01b", "y", "cancellation", text)
    assert place.lead == "The error shows here:" and "tl.store(y_ptr" in place.source


def test_a_copy_without_solutions_marks_by_the_rules_alone(monkeypatch):
    exercise = catalog.get("01b")
    entry = next(e for e in mutants.read_mutants(exercise) if e["id"] == "one_pass")
    text = mutants.make_text(exercise, entry)
    monkeypatch.setattr(paths, "SOLUTIONS", paths.ROOT / "no such folder")
    place = find_place("01b", "y", "cancellation", text)
    assert place.lead == "" and "var = " in place.source


def test_a_cause_without_a_quantity_claims_no_line():
    place = find_place("07a", "y", "wrong_values", texts.read_solution(catalog.get("07a")))
    assert place.lead == "The error shows here:" and place.label == "y is made here"


def test_each_gradient_has_its_own_part_of_the_return():
    text = texts.read_solution(catalog.get("14a")).replace(".to(w.dtype)", ".to(rows.dtype)")
    places = [find_place("14a", output, "gradient_dtype", text) for output in ("dx", "dw", "db")]
    assert len({place.line for place in places}) == 3 and all(
        f"{name}." in place.source for name, place in zip(("dx", "dw", "db"), places, strict=True)
    )


@pytest.mark.parametrize(
    "more",
    [
        "x = x / tl.sum(x / x, axis=0)\n    ",
        "x = x" + " + x" * 60 + "\n    ",
        "x = " + "-" * 150 + "x\n    ",
    ],
)
@pytest.mark.parametrize("times", [100, 400])
def test_a_file_that_is_long_or_nested_costs_no_time(more, times):
    text = texts.read_solution(catalog.get("01b")).replace(
        "tl.store(y_ptr", more * times + "tl.store(y_ptr", 1
    )
    started = time.monotonic()
    for cause in (
        "divisor",
        "low_precision",
        "cancellation",
        "xhat_wrong",
        "tail_left_out",
        "padding_in_variance",
    ):
        assert find_place("01b", "y", cause, text) is not None
    assert time.monotonic() - started < 30


def mark_fault(exercise_id: str, cause: str, text: str, kind: FaultKind, line_of: str) -> Place:
    """The place of a verdict whose fault lies in the line that begins with ``line_of``."""
    exercise = catalog.get(exercise_id)
    line = next(n for n, s in enumerate(text.split("\n"), 1) if s.strip().startswith(line_of))
    judged = Judged(make_plans(exercise)[0], fault=Fault(kind, "dw_buffer", None, line))
    return wording.find_place(judged, cause, "mine.py", text, exercise)


def test_a_row_offset_that_is_narrow_in_the_store_is_marked_there():
    """The lines above it, loops among them, make no row number."""
    text = texts.read_solution(catalog.get("18a")).replace(
        "tl.store(dx_row + cols", "tl.store(dx_ptr + tl.program_id(0) * stride_dx + cols"
    )
    place = find_place("18a", "dx", "offset_32_bit", text)
    assert "tl.program_id(0) * stride_dx" in place.source and place.label == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tl.atomic_xchg(turn_ptr, turn + 1)", 'tl.atomic_xchg(turn_ptr, turn + 1, sem="relaxed")'),
        ("while now != turn:", 'while tl.atomic_add(turn_ptr, 0, sem="relaxed") != turn:'),
        ("while now != turn:", "while tl.load(turn_ptr) != turn:"),
    ],
)
def test_a_race_is_marked_at_the_order_that_allows_it(old, new):
    text = texts.read_solution(catalog.get("12b")).replace(old, new)
    place = mark_fault("12b", "race", text, FaultKind.RACE, "dw += tl.load")
    assert new.strip() in place.source and place.label == ""


def test_without_a_weak_order_a_race_is_marked_where_the_programs_meet():
    text = texts.read_solution(catalog.get("12b"))
    place = mark_fault("12b", "race", text, FaultKind.RACE, "dw += tl.load")
    assert place.label == "two programs meet in dw_buffer here"
    place = mark_fault("12b", "deadlock", text, FaultKind.DEADLOCK, "now = tl.atomic_add")
    assert place.label == "a program waits here"


def test_with_what_a_sum_begins_is_no_known_mistake_beside_another():
    right = "def f(x):\n    s = tl.zeros([4], tl.float32)\n    s += x\n"
    wrong = right.replace("tl.float32", "tl.float16").replace("s += x", "s = x")
    assert known_lines.compare(right, [wrong]).wrong == (("s", "=", "x"),)
    alone = right.replace("tl.float32", "tl.float16")
    assert len(known_lines.compare(right, [alone]).wrong) == 1


def test_what_wrong_cases_share_holds_for_the_case_that_is_shown():
    plans = {plan.case.name: plan for plan in make_plans(catalog.get("13b"))}
    passed = Judged(plans["one column"])
    failed = [Judged(plan, fault=Fault(FaultKind.LOAD, "x", None, 1)) for plan in plans.values()
              if plan.case.N > 2]  # fmt: skip
    small = replace(failed[0].plan, case=replace(failed[0].plan.case, N=2))
    shown = Judged(small, fault=Fault(FaultKind.LOAD, "x", None, 1))
    seen = [passed, *failed]
    assert wording.count_wrong(seen, failed, failed[0]).endswith("all with 3 columns or more")
    assert wording.count_wrong(seen, failed, shown).endswith("all with 2 columns or more")
