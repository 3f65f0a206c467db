"""What the interpreter finds while a GPU still works. The GPU's process is stood in for by one that
never ends, on any machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading import grade
from course_lib.grading.execution import runner
from course_lib.grading.kind import find_mode
from course_lib.grading.plans import make_plans
from course_lib.grading.submission.source import Kernels
from course_lib.sandbox import servers
from course_lib.sandbox.stage import STOP

EX = catalog.get("12a")
RELEASE = "    tl.atomic_xchg(lock_ptr + group, 0)\n"
ENDLESS = Kernels("while True:\n    pass\n", EX.entry_points)
# processor seconds, more than a test may take
LIMITS = dataclasses.replace(find_mode("gpu").limits, case=600.0, load=600.0)


@pytest.fixture
def endless_gpu(monkeypatch):
    """Jobs for the GPU never end by themselves."""
    stock = runner.run

    def run(kernels, plans, mode, *arguments, **named):
        return stock(ENDLESS if mode == "gpu" else kernels, plans, "cpu", *arguments, **named)

    monkeypatch.setattr(runner, "run", run)


def test_a_deadlock_is_told_once_the_interpreter_knows_it(endless_gpu, tmp_path):
    file = tmp_path / f"{EX.file}.py"
    solution = texts.read_solution(EX)
    assert solution.count(RELEASE) == 1
    file.write_text(solution.replace(RELEASE, ""))
    verdict, _ = grade.grade(EX, file, "gpu", 0, None, LIMITS)
    assert (verdict.status, verdict.cause) == ("fail", "deadlock"), verdict.message


def test_a_run_that_is_not_over_keeps_its_time():
    asked = []
    run = runner.run(
        ENDLESS,
        make_plans(EX)[:1],
        "cpu",
        dataclasses.replace(LIMITS, load=1.0),
        is_over=lambda: bool(asked.append(1)),
    )
    assert len(asked) > 1 and (run.ended, run.case) == ("timed out", 0)


def test_a_run_that_is_over_before_it_begins_was_started_all_the_same(monkeypatch):
    """A GPU's process takes seconds to begin."""
    stock = servers.ask

    def ask(kind, question, *rest):
        Path(question["folder"], STOP).touch()
        return stock(kind, question, *rest)

    monkeypatch.setattr(servers, "ask", ask)
    run = runner.run(ENDLESS, make_plans(EX)[:1], "cpu", LIMITS)
    assert (run.ended, run.case) == ("timed out", 0)
