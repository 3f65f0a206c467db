"""What a taken-over process leaves behind, of the right shape and with nonsense in it, is a
verdict: no pass, no fault of the grader.

No process runs here: the folder is filled as a process could fill it, and the verdict is made of
that.
"""

from __future__ import annotations

import json
import os
import random

import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog.exercise import exercises
from course_lib.grading.check import check
from course_lib.grading.judging.compiled import Compilation
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.sandbox import isolation, jobs
from course_lib.sandbox.jobs import JobAnswer
from course_lib.sandbox.stage import Stage

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="on a GPU the interpreter is asked, too"
)

TYPES = [
    "OutOfBounds",
    "Interleaved",
    "Misuse",
    "WrongReturn",
    "OSError",
    "Unplaceable",
    "",
    "A" * 300,
]
TEXTS = ["", "x", "File too large", "[1] 'x'", "a\n" * 500, "\x00", "a" * 50_000]
KINDS = [
    "load",
    "store",
    "input",
    "reads",
    "alone",
    "calls",
    "uncalled",
    "ctx",
    "unwritten",
    "race",
    "order",
    "deadlock",
    "livelock",
    "no barrier",
    "atomic_cas",
    "",
    "a" * 5000,
]
NUMBERS = [None, True, 0, 1, -1, 2, 7, 12, 30, 10**18, -(10**30), 2**64]
ENDS = [
    "finished",
    "finished",
    "timed out",
    "waited",
    "flooded",
    "too much memory",
    "too many processes",
]


def make_report(draw: random.Random, tensors: list[str]) -> dict:
    names = [*tensors, "", "nobody", "x_ptr", "\n"]
    numbers = {name: draw.choice(NUMBERS) for name in ("line", "column", "end_column")}
    fault = {
        "kind": draw.choice(KINDS),
        "tensor": draw.choice(names),
        "row": draw.choice(NUMBERS),
        "line": draw.choice(NUMBERS),
    }
    described = {
        "type": draw.choice(TYPES),
        "text": draw.choice(TEXTS),
        "lost": draw.random() < 0.1,
    }
    return described | numbers | {"fault": draw.choice([None, fault])}


def forge(inputs: dict, case: dict, number: int, draw: random.Random) -> dict[str, bytes]:
    """Return what a hostile job could leave of a case."""
    outputs: dict[str, bytes] = {}
    size = sum(tensor["nbytes"] for tensor in case["tensors"])
    report = make_report(draw, [tensor["name"] for tensor in case["tensors"]])
    if draw.random() < 0.6:
        outputs[f"{number:02}.error"] = json.dumps(report).encode()
    if draw.random() < 0.01:
        outputs["import.error"] = json.dumps(report).encode()
    if draw.random() < 0.5:
        outputs[f"{number:02}.out"] = draw.choice(
            [bytes(size), b"\xff" * size, inputs[f"{number:02}.in"], os.urandom(size)]
        )
    return outputs


@pytest.mark.parametrize("name", exercises())
def test_nonsense_is_a_verdict(name, monkeypatch):
    exercise, draw = catalog.get(name), random.Random(name)

    def leave_nonsense(kind, job, limits, *, inputs, **_):
        outputs = {}
        for number, case in enumerate(job["cases"]):
            outputs |= forge(inputs, case, number, draw)
        code = draw.choice([0, -11, 1, 70])  # one killed from outside is the machine's
        return JobAnswer(
            isolation.NAMESPACES,
            draw.choice(ENDS),
            Stage.RUNNING,
            code,
            "",
            {},
            frozenset(),
            outputs,
        )

    solution = paths.SOLUTIONS / f"{exercise.file}.py"
    kernels = reader.read(exercise, solution.read_text(), solution.name)
    assert isinstance(kernels, Kernels)
    monkeypatch.setattr(reader, "read", lambda exercise, text, name: kernels)
    monkeypatch.setattr(Compilation, "_warm", lambda self: None)
    monkeypatch.setattr(jobs, "run", leave_nonsense)
    for _ in range(8):
        verdict = check(exercise, solution)
        assert verdict.status in ("fail", "error"), verdict.message
        assert 0 < len(verdict.message) < 2000
        json.dumps(verdict.as_dict())


@pytest.mark.parametrize("name", ["00a", "08a", "15b"])
def test_a_forged_report_of_an_unwritten_output_is_no_result(name, monkeypatch):
    """What it says is forgiven where the outputs are right. Here there are none."""
    exercise = catalog.get(name)

    def report_and_leave_nothing(kind, job, limits, **_):
        outputs = {}
        for number, case in enumerate(job["cases"]):
            tensor = next(t["name"] for t in case["tensors"] if t["is_output"])
            fault = {"kind": "unwritten", "tensor": tensor, "row": None, "line": None}
            places = {"line": None, "column": None, "end_column": None}
            report = {"type": "Misuse", "text": "forged", "lost": False, "fault": fault} | places
            outputs[f"{number:02}.error"] = json.dumps(report).encode()
        return JobAnswer(
            isolation.NAMESPACES, "finished", Stage.RUNNING, 0, "", {}, frozenset(), outputs
        )

    solution = paths.SOLUTIONS / f"{exercise.file}.py"
    kernels = reader.read(exercise, solution.read_text(), solution.name)
    monkeypatch.setattr(reader, "read", lambda exercise, text, name: kernels)
    monkeypatch.setattr(Compilation, "_warm", lambda self: None)
    monkeypatch.setattr(jobs, "run", report_and_leave_nothing)
    monkeypatch.setattr(Compilation, "find_refusal", lambda self: None)
    assert check(exercise, solution).status in ("fail", "error")
