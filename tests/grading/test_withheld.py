"""With hidden cases nothing that a submission says is passed on: it could say what the cases
hold."""

from __future__ import annotations

import json
import re

import pytest

import course_lib
from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.plans import make_plans
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.grading.verdict import Verdict

COPY, ONE_PASS, NORM = catalog.get("00a"), catalog.get("03a"), catalog.get("01a")
SECRET = "nobody may read this, never"
STORE = "    tl.store(y_ptr + offsets, x, mask=mask)\n"
interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a compiled kernel prints by other means"
)


def copying(line: str) -> str:
    text = texts.read_solution(COPY)
    assert text.count(STORE) == 1
    return text.replace(STORE, line + STORE)


def graded(
    exercise: catalog.Exercise, text: str, folder, secret: str | None = SECRET, **how
) -> Verdict:
    file = folder / "mine.py"
    file.write_text(text, encoding="utf-8")
    return check(exercise, file, secret=secret, **how)


def digits_of(value: object) -> set[str]:
    """The numbers with five digits or more, as whoever looks for an input would: of a verdict that
    may hold no input, none."""
    # a setting of a case, which its description tells to everybody
    described = json.dumps(value).replace("std 0.0001", "")
    return set(re.findall(r"\d\.\d{4,}", described))


@interpreted
@pytest.mark.parametrize(
    "line",
    [
        "    print('x is', x, n)\n",
        "    tl.device_print('x', x)\n",
        "    tl.static_print('BLOCK is', BLOCK, x)\n",
    ],
)
@pytest.mark.parametrize("right", [True, False], ids=["pass", "fail"])
def test_what_is_printed_is_counted_and_not_shown(tmp_path, line, right):
    text = copying(line)
    text = (
        text if right else text.replace("x, mask=mask)\n    # END", "x + 1, mask=mask)\n    # END")
    )
    open_to_all, hidden = graded(COPY, text, tmp_path, None), graded(COPY, text, tmp_path)
    assert open_to_all.status == hidden.status == ("pass" if right else "fail")
    assert "BLOCK is" in open_to_all.printed or digits_of(open_to_all.printed), (
        "the learner's own check shows it"
    )
    assert re.fullmatch(
        r"(The last )?\d+ characters were printed; with hidden cases they are not shown\.",
        hidden.printed,
    )
    shown = digits_of(
        {
            name: value
            for name, value in hidden.as_dict().items()
            if name not in ("first", "message", "seconds")
        }
    )
    assert shown == set()


def test_nothing_printed_needs_no_word(tmp_path):
    assert graded(COPY, copying(""), tmp_path).printed == ""


RAISES = {
    "a kernel's assertion": (
        COPY,
        lambda: copying("    tl.static_assert(BLOCK < 0, f'the input is {x}')\n"),
    ),
    "a function's assertion": (
        ONE_PASS,
        lambda: texts.read_solution(ONE_PASS).replace(
            "    # BEGIN SOLUTION\n",
            "    # BEGIN SOLUTION\n    assert False, f'the input is {x!r}'\n",
            1,
        ),
    ),
}


@interpreted
@pytest.mark.parametrize(("exercise", "make"), RAISES.values(), ids=RAISES)
def test_of_an_exception_type_and_line_are_said(tmp_path, exercise, make):
    open_to_all = graded(exercise, make(), tmp_path, None)
    hidden = graded(exercise, make(), tmp_path)
    assert open_to_all.status == hidden.status == "fail" and open_to_all.cause == hidden.cause
    assert "the input is" in open_to_all.message and "the input is" not in hidden.message
    assert "AssertionError: with hidden cases its text is not shown." in hidden.message
    assert (
        hidden.place == open_to_all.place
        and hidden.place is not None
        and f"line {hidden.place.line}" in hidden.message
    )
    assert (
        digits_of({name: value for name, value in hidden.as_dict().items() if name != "seconds"})
        == set()
    )


FORGED = {
    "an exception whose name is the input": (
        NORM,
        "raise type('x' + str(float(x.flatten()[0])), (Exception,), {})('x')",
    ),
    "an exception whose text is the input": (NORM, "raise ValueError(str(x))"),
    "a wrong return whose shape is the input": (
        NORM,
        "return torch.zeros(int(abs(x.flatten()[0]) * 1e5))",
    ),
    "a wrong return whose type is the input": (
        NORM,
        "return type('x' + str(float(x.flatten()[0])), (), {})()",
    ),
}


@pytest.mark.parametrize(("exercise", "line"), FORGED.values(), ids=FORGED)
def test_what_gets_past_the_list_says_no_more(tmp_path, monkeypatch, exercise, line):
    text = f"import torch\n\n\ndef layer_norm(x, w, b, eps):\n    {line}\n"
    monkeypatch.setattr(
        reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points)
    )
    open_to_all, hidden = graded(exercise, text, tmp_path, None), graded(exercise, text, tmp_path)
    assert hidden.status == open_to_all.status and hidden.cause == open_to_all.cause
    told = {
        name: value for name, value in hidden.as_dict().items() if name not in ("seconds", "place")
    }
    assert digits_of(told) == set()
    x = next(iter(make_plans(exercise, 0, Secret(SECRET)))).tensor("x")
    first = x.read(x.initial_bytes()).flat[0]
    assert str(int(abs(float(first)) * 1e5)) not in json.dumps(told)


@interpreted
def test_a_forged_fault_says_only_what_the_case_knows(tmp_path, monkeypatch):
    forged = """import triton; import triton.language as tl
class OutOfBounds(Exception):
    def __init__(self, text): self.args, self.kind, self.tensor, self.row, self.line = (text,), text, text, 12345678, 87654321
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    raise OutOfBounds("0.123456")
"""  # noqa: E501
    monkeypatch.setattr(reader, "read", lambda *rest: Kernels(forged, ("copy_kernel",)))
    hidden = graded(COPY, copying(STORE), tmp_path)
    assert hidden.status in ("fail", "error")
    told = hidden.as_json()
    assert not any(number in told for number in ("0.123456", "12345678", "87654321"))


@interpreted
def test_a_fault_in_memory_keeps_its_line_and_its_tensor(tmp_path):
    hidden = graded(
        COPY, copying("").replace("x, mask=mask)\n    # END", "x)\n    # END"), tmp_path
    )
    assert (hidden.status, hidden.cause) == ("fail", "store_outside")
    assert hidden.first is not None and "outside y" in hidden.first.words
    assert hidden.place is not None and "tl.store" in hidden.place.source


def test_one_wrong_element_is_shown_and_of_other_cases_that_they_are_wrong(tmp_path):
    text = copying("").replace("x, mask=mask)\n    # END", "x * 1.5, mask=mask)\n    # END")
    hidden = graded(COPY, text, tmp_path)
    assert hidden.status == "fail" and hidden.first is not None and hidden.first.got is not None
    wrong = [case for case in hidden.cases if case.status == "fail"]
    assert len(wrong) > 1 and all(
        case.detail.endswith(": wrong") and not digits_of(case.detail) for case in wrong
    )
    assert all(
        case.error is None or case.error == float(f"{case.error:.1g}") for case in hidden.cases
    )


def test_a_bug_of_the_grader_says_only_its_type(tmp_path, monkeypatch):
    def bug(*rest):
        raise ValueError("an input is 0.123456")

    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "file" / "state"))
    (tmp_path / "file").touch()
    monkeypatch.setattr(runner, "run", bug)
    hidden = graded(COPY, copying(""), tmp_path)
    assert (
        hidden.status == "grader fault"
        and "ValueError" in hidden.message
        and "0.123456" not in hidden.as_json()
    )
