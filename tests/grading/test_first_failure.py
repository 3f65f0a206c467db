"""The first wrong case is told while others still run: judged from bytes, once, and never of hidden
cases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.judging import wording
from course_lib.grading.judging.judge import judge
from course_lib.grading.kind import find_mode
from course_lib.grading.plans import make_plans
from course_lib.grading.running import FirstFailure

EX = catalog.get("01a")
SHORT = dataclasses.replace(find_mode("torch").limits, case=1.5)
# wrong from the first case on; the last one never ends
HANGS = """import torch

def layer_norm(x, w, b, eps):
    if x.shape[-1] == 16400:
        while True:
            pass
    return {result}
"""


@pytest.fixture
def hand_in(tmp_path, monkeypatch):
    """Check a file's text; returns what happened, in order, and the verdict."""

    def hand_in(text: str, **options):
        file, events = tmp_path / "handed_in.py", []
        file.write_text(text)
        stock = runner.jobs.run

        def run(kind, *arguments, **named):
            answer = stock(kind, *arguments, **named)
            if kind == find_mode("torch").server:  # and not the one that reads the file
                events.append("ended")
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(runner.jobs, "run", run)
            verdict = check(EX, file, limits=SHORT, tell_first_failure=events.append, **options)
        return events, verdict

    return hand_in


def test_the_first_wrong_case_is_told_before_the_others_have_ended(hand_in):
    events, verdict = hand_in(HANGS.format(result="x + b"))
    first = make_plans(EX)[0].case.describe()
    assert events[1:] == ["ended"] and verdict.status == "fail"
    assert events[0].startswith(f"Case 1 of {len(make_plans(EX))} is wrong ({first}): y ")


def test_a_case_that_is_right_is_not_told(hand_in):
    events, verdict = hand_in(texts.read_solution(EX))
    assert events == ["ended", "ended"] and verdict.passed  # the second run is a second job


def test_nothing_of_hidden_cases_is_told(hand_in):
    events, verdict = hand_in(
        "import torch\n\ndef layer_norm(x, w, b, eps):\n    sum(range(2_000_000))\n    return x"
        " + b\n",
        secret="a secret of mine",
    )
    assert verdict.status == "fail" and set(events) == {"ended"}


def test_only_the_bytes_count_and_only_the_first_is_told():
    plans, told = make_plans(EX), []
    right = []
    for plan in plans:
        pieces = []
        for tensor in plan.tensors:
            buffer = np.frombuffer(
                bytearray(tensor.initial_bytes()), dtype=tensor.read(tensor.initial_bytes()).dtype
            )
            if tensor.is_output:
                tensor.view(buffer)[...] = plan.expected[tensor.name].values
            pieces.append(buffer.tobytes())
        right.append(b"".join(pieces))
    assert all(judge(plan, data).passed for plan, data in zip(plans, right, strict=True))
    failure = FirstFailure(plans, told.append)
    untouched = b"".join(tensor.initial_bytes() for tensor in plans[3].tensors)
    for number, data in ((0, right[0]), (2, right[2]), (3, untouched), (1, untouched)):
        failure.take(number, data)
    assert told == [
        f"Case 4 of {len(plans)} is wrong ({plans[3].case.describe()}): all of y never written."
    ]


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_a_line_names_the_output(exercise):
    """Of outputs left as they were, in every case of every exercise. One that starts with an
    input's numbers is wrong, not unwritten."""
    # what its tests return is written by the course, and never left out
    if exercise.kind == "tests":
        return
    plans = make_plans(exercise)
    for number, plan in enumerate(plans):
        judged = judge(plan, b"".join(tensor.initial_bytes() for tensor in plan.tensors))
        if not judged.passed:
            line = wording.describe_first_failure(judged, number, len(plans))
            assert any(
                (f": {t.name} is off by" if t.in_place else f" of {t.name} never written.") in line
                for t in plan.tensors
            ), line
            assert "\n" not in line and len(line) < 400
