"""What a check counts of a kernel: it is the learner's own, moves with an edit, and the course's
numbers beside it are those of the course's solution."""

from __future__ import annotations

import html
import io
import json
import math
import re
from dataclasses import replace

import pytest
import triton
import triton.language as tl

from course_lib import catalog, exercise
from course_lib.authoring import exercises
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.cli.verdict_view import verdict_view
from course_lib.exercises import find_parts
from course_lib.grading import counting, grade
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.execution.case_runner import name_counts
from course_lib.grading.report import describe_count
from course_lib.grading.verdict import FAIL, NOT_ATTEMPTED, PASS, KernelCount, from_dict
from course_lib.interpreter import hooks, launch
from course_lib.sandbox.jobs import JobAnswer

COUNTED = [e for e in catalog.exercises().values() if any(p.counts for p in find_parts(e).values())]
LOADED_AGAIN = (
    "        # BEGIN SOLUTION\n        #: y",
    "        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)\n"
    "        # BEGIN SOLUTION\n        #: y",
)


def check_edited(exercise_id: str, tmp_path, *edits: tuple[str, str], **how):
    course_exercise = catalog.get(exercise_id)
    text = texts.read_solution(course_exercise)
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file = tmp_path / f"{course_exercise.file}.py"
    file.write_text(text)
    return check(course_exercise, file, mode="cpu", **how)


def list_yours(verdict) -> dict[str, float | None]:
    return {f"{count.name} {count.unit}": count.yours for count in verdict.counts}


def test_the_lessons_on_performance_count():
    assert [e.id for e in COUNTED] == ["06a", "07a", "07b", "08a", "09a"]


@pytest.mark.parametrize("course_exercise", COUNTED, ids=lambda e: e.id)
def test_the_courses_counts_are_those_of_its_solution(course_exercise, tmp_path):
    waits = {"tell_first_failure": lambda words: None}
    verdict = check_edited(course_exercise.id, tmp_path, **waits)
    assert verdict.status == PASS and verdict.counts
    is_pinned = triton.__version__.startswith("3.7.")
    for count in verdict.counts:
        assert count.yours is not None and count.least <= count.course, count
        assert count.yours == count.course or ("for an H100" in count.place and not is_pinned), (
            count
        )
        assert count.limit is None or count.least <= count.course <= count.limit


@pytest.mark.parametrize("course_exercise", COUNTED, ids=lambda e: e.id)
def test_the_counted_case_is_one_of_the_battery(course_exercise):
    for part in find_parts(course_exercise).values():
        assert part.counted_case in {case.name for case in part.battery}
        compiled = [count for count in part.counts if count.quantity.is_compiled]
        assert bool(compiled) == (part.compiled is not None)


def test_reads_move_with_an_edit_before_the_pass(tmp_path):
    verdict = check_edited("07a", tmp_path, LOADED_AGAIN)
    assert (verdict.status, verdict.cause) == (FAIL, "extra_pass")
    (reads,) = verdict.counts
    assert (reads.yours, reads.course, reads.least, reads.limit) == (4, 3, 2, 3)
    wrong = check_edited("07a", tmp_path, ("rstd * w + b\n        # END", "w + b\n        # END"))
    assert wrong.cause != "extra_pass" and wrong.counts[0].yours == 3


def test_meetings_of_lanes_move_with_the_row(tmp_path):
    verdict = check_edited(
        "06a", tmp_path,
        ("total = tl.zeros([BLOCK], dtype=tl.float32)", "total = 0.0"),
        ("total += x.to(tl.float32)", "total += tl.sum(x.to(tl.float32), axis=0)"),
        ("tl.store(y_ptr + row, tl.sum(total, axis=0))", "tl.store(y_ptr + row, total)"),
    )  # fmt: skip
    assert verdict.cause == "lanes_meet_often"
    assert verdict.counts[0].yours == 16 == math.ceil(1000 / 64)


def test_bytes_are_those_of_the_matrices(tmp_path):
    read_back = (
        "total = rounded.to(tl.float32)",
        "total = tl.load(total_ptr + row * stride_total + cols, mask=mask, other=0.0)"
        ".to(tl.float32)",
    )
    verdict = check_edited("09a", tmp_path, read_back)
    assert verdict.cause == "extra_pass" and verdict.counts[0].yours == 5 * 2


def test_a_compiler_is_asked_only_if_somebody_waits(tmp_path):
    of_compiler = [
        count.yours for count in check_edited("08a", tmp_path).counts if "H100" in count.place
    ]
    assert of_compiler == [None] * 3


def test_code_that_ends_before_the_case_has_no_count(tmp_path):
    verdict = check_edited("07a", tmp_path, ("mask=cols < N, other=0.0).to(tl.float32)\n    mean",
                                             "other=0.0).to(tl.float32)\n    mean"))  # fmt: skip
    assert verdict.status != PASS and verdict.counts[0].yours is None


def test_a_file_that_is_not_attempted_shows_the_goal(own_exercises):
    exercises.write(own_exercises)
    verdict = check(catalog.get("07a"))
    assert verdict.status == NOT_ATTEMPTED
    assert [(c.yours, c.course, c.least) for c in verdict.counts] == [(None, 3, 2)]


def test_on_a_gpu_the_interpreter_counts_beside_it(tmp_path, monkeypatch):
    stock = runner.run

    def run(kernels, plans, mode, *arguments, **named):
        result = stock(kernels, plans, "cpu", *arguments, **named)
        return replace(result, counts={}) if mode == "gpu" else result

    monkeypatch.setattr(runner, "run", run)
    file = tmp_path / "ex07a_layer_norm_forward.py"
    wrong = texts.read_solution(catalog.get("07a")).replace("+ eps)", "+ 2 * eps)")
    file.write_text(wrong.replace(*LOADED_AGAIN))
    verdict, _judged = grade.grade(catalog.get("07a"), file, "gpu", 0, None, None)
    assert verdict.cause != "extra_pass" and verdict.counts[0].yours == 4


def test_hidden_cases_are_not_counted(tmp_path):
    assert check_edited("06a", tmp_path, secret="a secret of a teacher").counts == ()


def test_a_verdict_keeps_its_counts(tmp_path):
    verdict = check_edited("07a", tmp_path, LOADED_AGAIN)
    assert from_dict(json.loads(verdict.as_json())).counts == verdict.counts


@pytest.mark.parametrize(
    "forged", [b"", b"[1]", b'{"moved": -1}', b'{"moved": 1e400}', b'{"moved": "many"}',
               b'{"moved": 1' + b"0" * 3000 + b"}", b"\xff"],
)  # fmt: skip
def test_a_forged_report_counts_nothing(forged):
    answer = JobAnswer.__new__(JobAnswer)
    object.__setattr__(answer, "outputs", {name_counts(0): forged})
    assert runner._read_counts(answer, name_counts(0)) == {}


def test_every_reduction_of_two_lanes_or_more_is_seen():
    import numpy as np

    @triton.jit
    def add(a, b):
        return a + b

    @triton.jit
    def kernel(x_ptr):
        x = tl.load(x_ptr + tl.arange(0, 8))
        tl.store(x_ptr, tl.sum(x, axis=0) + tl.max(x) + tl.reduce(x, 0, add))
        tl.store(x_ptr + tl.arange(0, 8), tl.cumsum(x, axis=0))
        lone = tl.reshape(x, [8, 1])
        tl.store(x_ptr + tl.arange(0, 8), tl.sum(lone, axis=1))

    memory, seen = np.arange(8, dtype=np.float32), []
    with hooks.observing_reductions(lambda: seen.append(1)):
        launch.launch(kernel, (1,), [launch.pointer(memory.ctypes.data, "fp32")], {})
    assert len(seen) == 4
    with hooks.observing_reductions(lambda: seen.append(1)):
        pass
    assert len(seen) == 4


def words(widget) -> str:
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", widget.value))


def test_the_panel_shows_counts_before_a_check_after_a_failure_and_when_reopened(own_exercises):
    exercises.write(own_exercises)
    file = texts.find_file(catalog.get("07a"))
    panel = exercise("07a")
    assert re.search(r"Not checked yet.*at most 3.*yours\s+\?\s+course\s+3\s+least\s+2",
                     words(panel._result))  # fmt: skip
    file.write_text(texts.read_solution(catalog.get("07a")).replace(*LOADED_AGAIN))
    panel.check()
    assert re.search(r"yours\s+4\s+course\s+3\s+least\s+2", words(panel._result))
    assert "course-bar over" in panel._result.value
    assert re.search(r"yours\s+4\s+course\s+3", words(exercise("07a")._result))


def test_the_command_shows_a_line_for_each_count(tmp_path):
    from rich.console import Console

    verdict = check_edited("07a", tmp_path, LOADED_AGAIN)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(verdict_view(verdict, catalog.get("07a")))
    assert re.search(r"reads of x per element, at most 3\s+4\s+3\s+2\n", console.export_text())


def test_a_count_without_a_limit_says_none():
    count = KernelCount("registers", "per thread", 128, 128, 64, None, "")
    assert describe_count(count) == "registers per thread"
    assert describe_count(replace(count, limit=3.0)) == "registers per thread, at most 3"


def test_counts_without_cases_are_empty():
    assert counting.list_uncounted(catalog.get("00a")) == ()
    assert paths.SOLUTIONS.is_dir()
