"""Which elements of an output are wrong, and in what way: one answer for verdicts, evidence,
Compare and hunts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading.cases.buffers import DTYPES, Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Plan
from course_lib.grading.check import check
from course_lib.grading.judging import wording
from course_lib.grading.judging.elements import Element, judge_elements
from course_lib.grading.judging.judge import Judged, judge
from course_lib.hunt.asking import make_answer
from course_lib.hunt.probe import Probe
from course_lib.lessons.comparison import compare, write_outputs

NAN, INF = math.nan, math.inf
VALUES = st.sampled_from([0.0, -0.0, 1.0, 1.25, 1.5, 3.0, -1.0, NAN, INF, -INF])
ALLOWED = st.sampled_from([0.0, 0.25, INF, NAN])
# None: never written
ELEMENTS = st.lists(st.tuples(VALUES | st.none(), VALUES, ALLOWED), max_size=5)
WRITTEN = st.lists(st.tuples(VALUES, VALUES, ALLOWED), max_size=5)


def answer(
    elements: list[tuple], signed: bool, as_matrix: bool = False, poison: int | None = None
) -> Judged:
    """Judge a case whose only output ends as ``elements`` say: what was stored, what is expected,
    how far off it may be."""
    shape = (1, len(elements)) if as_matrix else (len(elements),)
    y = Tensor("y", "fp32", shape, (max(len(elements), 1), 1)[-len(shape) :], poison=poison)
    want, allowed = (np.array([e[i] for e in elements], np.float64).reshape(shape) for i in (1, 2))
    buffer = np.frombuffer(bytearray(y.initial_bytes()), DTYPES["fp32"])
    for place, (stored, _, _) in zip(np.ndindex(shape), elements, strict=True):
        if stored is not None:
            y.view(buffer)[place] = stored
    case = Case("edges", 1, len(elements), 0, "edges")
    plan = Plan(
        case, "kernel", (1,), (y,), ("y",), {}, {"y": Expected(want, allowed, signed=signed)}
    )
    return judge(plan, buffer.tobytes())


def find_kind(stored: float | None, want: float, allowed: float, signed: bool) -> Element:
    """Say what one element is, by the rules that :class:`Expected` states."""
    if stored is None:
        return Element.UNWRITTEN
    if math.isnan(allowed):
        return Element.RIGHT
    if not math.isfinite(stored):
        same = stored == want or (math.isnan(stored) and math.isnan(want))
        return Element.RIGHT if same or math.isinf(allowed) else Element.WRONG_KIND
    if not math.isfinite(want):
        return Element.WRONG_KIND
    if stored == want == 0:
        differs = math.copysign(1, stored) != math.copysign(1, want)
        return Element.WRONG_ZERO if signed and differs else Element.RIGHT
    return Element.OFF if abs(stored - want) > allowed else Element.RIGHT


@settings(deadline=None)
@given(ELEMENTS, st.booleans(), st.booleans(), st.sampled_from([None, 0x7E000001]))
def test_all_who_ask_get_one_answer(elements, signed, as_matrix, poison):
    """``poison``: a second run's outputs hold a large number before anything is stored there."""
    judged = answer(elements, signed, as_matrix, poison)
    kinds = [find_kind(*element, signed) for element in elements]
    wrong = [kind is not Element.RIGHT for kind in kinds]
    assert judged.elements["y"].kinds.ravel().tolist() == kinds
    # the verdict
    assert judged.right == (not any(wrong))
    assert {d.kind: d.count for d in judged.deviations} == {
        k: kinds.count(k) for k in kinds if k is not Element.RIGHT
    }
    # Compare
    shown = write_outputs(judged)
    assert ("all right" in shown) == (not any(wrong))
    if any(wrong):
        assert f"{sum(wrong)} of {len(elements)} elements wrong" in shown
        (row,) = re.findall(
            rf'<tr><th scope="row">{"0" if as_matrix else "yours"}</th>(.*?)</tr>', shown
        )[:1]
        assert [cell.startswith("<td class=") for cell in re.findall("<td.*?</td>", row)] == wrong
    if not elements:
        return  # a hunt has no empty inputs
    (table,) = make_answer(Probe(), judged).expected
    assert [bool(cell.look) for cell in table.rows[0][1][: len(elements)]] == wrong


@given(WRITTEN, st.booleans())
def test_evidence_that_has_outputs_alone_gets_the_same_answer(elements, signed):
    judged = answer(elements, signed)
    again = judge_elements(judged.outputs["y"], judged.plan.expected["y"])
    assert again.kinds.tolist() == judged.elements["y"].kinds.tolist()


@pytest.mark.parametrize(
    ("stored", "want", "words"),
    [(0.0, -0.0, "0 where -0 belongs"), (-0.0, 0.0, "-0 where 0 belongs")],
)
def test_a_zero_of_the_wrong_sign_has_its_own_words(stored, want, words):
    judged = answer([(1.0, 1.0, 0.0), (stored, want, 0.25)], signed=True)
    assert wording.describe_finding(judged).words == f"y[1] is {words}; 1 of 2 elements"
    assert (
        f"Case 1 of 1 is wrong ({judged.plan.case.describe()}): y[1] is {words}."
        == wording.describe_first_failure(judged, 0, 1)
    )
    shown = write_outputs(judged)
    assert "-0 where 0 belongs" in shown and 'class="course-zero"' in shown
    assert [">-0<" in row for row in re.findall("<tr>.*?</tr>", shown)[1:]] == [
        str(stored) == "-0.0",
        str(want) == "-0.0",
        False,
    ]


def test_verdict_and_compare_agree_on_a_lost_minus_zero(tmp_path):
    exercise = catalog.get("00a")
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(
        texts.read_solution(exercise).replace("offsets, x, mask", "offsets, x + 0.0, mask"),
        encoding="utf-8",
    )
    verdict = check(exercise, file, mode="cpu")
    assert verdict.status == "fail" and "0 where -0 belongs" in verdict.first.words, verdict.message
    shown = compare(exercise, file)
    assert (
        f"{verdict.first.wrong} of {verdict.first.size} elements wrong" in shown
        and "0 where -0 belongs" in shown
    )
