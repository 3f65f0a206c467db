"""15b: a launch is judged by what can be known without a clock, and on a GPU by its time as well; a
class is never graded by a clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import course_lib
from course_lib import catalog
from course_lib.base.errors import EnvironmentFault
from course_lib.base.runtime import Runtime
from course_lib.catalog import texts
from course_lib.exercises.ex15b_choose_a_launch.cases import PARTS
from course_lib.grading import grade
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.check import check
from course_lib.grading.plans import make_plans
from course_lib.grading.report import make_report
from course_lib.tuning import clock, launch
from course_lib.tuning.clock import GOAL, Clocks, NoRoom

EXERCISE = catalog.get("15b")
TIMED = [case for part in PARTS.values() for case in part.battery if case.timed]


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU that nobody has: ``shares`` says by N what of the floor's bandwidth a
    launch reaches there."""
    found = SimpleNamespace(shares={}, own=1.0, launches=[])

    def prepare(shape, chosen):
        found.launches.append((shape.N, chosen))
        return Clocks(
            lambda: 100.0,
            lambda: 100.0 / found.shares.get(shape.N, 0.97),
            lambda: 100.0 / found.own,
        )

    monkeypatch.setattr(clock, "prepare_gpu", prepare)
    machine = Runtime("gpu", "cuda", "GPU of a test", "a test says so")
    monkeypatch.setattr(grade, "course_runtime", SimpleNamespace(current=lambda: machine))
    return found


def solution(tmp_path, change=("", "")):
    file = tmp_path / f"{EXERCISE.file}.py"
    text = texts.read_solution(EXERCISE)
    assert change[0] in text
    file.write_text(text.replace(*change) if change[0] else text, encoding="utf-8")
    return file


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="where there is a GPU, it measures")
def test_without_a_gpu_a_pass_promises_no_speed(tmp_path):
    verdict = check(EXERCISE, solution(tmp_path))
    assert verdict.passed and len(verdict.cases) == len(PARTS["choose_launch"].battery)
    assert (
        "fits an H100. Whether it is fast was not measured: this machine has no GPU."
        in verdict.message
    )
    assert all(
        "KB under way" in case.detail and "registers" in case.detail for case in verdict.cases
    )


def test_on_a_gpu_a_pass_shows_every_time(tmp_path, gpu):
    verdict = check(EXERCISE, solution(tmp_path))
    assert verdict.passed and "Timed on GPU of a test: 0.97, 0.97" in verdict.message
    rows = [case for case in verdict.cases if case.name.startswith("time of ")]
    assert len(rows) == len(TIMED) == len(gpu.launches) == 5
    assert "103.1 us, floor 100.0 us, 0.97 of the floor's bandwidth" in rows[0].detail


def test_what_is_timed_is_what_the_file_returned(tmp_path, gpu):
    check(EXERCISE, solution(tmp_path, ("4096 // BLOCK)", "2048 // BLOCK)")))
    assert (256, launch.LaunchChoice(8, 256, 2)) in gpu.launches and (
        1024,
        launch.LaunchChoice(2, 1024, 2),
    ) in gpu.launches


def test_too_slow_on_a_gpu_is_a_fail_with_the_time(tmp_path, gpu):
    gpu.shares = {1024: 0.84, 8192: 0.71}
    verdict = check(EXERCISE, solution(tmp_path))
    assert (verdict.status, verdict.cause) == ("fail", "below_the_floor")
    assert (
        verdict.first.words.startswith("At 4096 x 8192 fp16, ROWS = 1")
        and "140.8 us, floor 100.0 us, 0.71 of the floor's bandwidth" in verdict.first.words
    )
    assert (
        verdict.common
        == f"2 of 5 timed shapes on GPU of a test are below {GOAL} of the floor's bandwidth."
    )
    assert [case.status for case in verdict.cases].count("fail") == 2
    assert "0.71" in str(make_report(verdict, EXERCISE))


def test_where_the_kernel_itself_is_no_faster_nobody_is_asked_to_be(tmp_path, gpu):
    gpu.shares, gpu.own = {8192: 0.8}, 0.85
    verdict = check(EXERCISE, solution(tmp_path))
    assert verdict.passed and any(
        "nobody is asked for more" in case.detail for case in verdict.cases
    )


def test_a_gpu_without_room_leaves_the_pass_and_says_so(tmp_path, gpu, monkeypatch):
    def prepare(shape, chosen):
        raise NoRoom("CUDA out of memory")

    monkeypatch.setattr(clock, "prepare_gpu", prepare)
    verdict = check(EXERCISE, solution(tmp_path))
    assert verdict.passed
    assert (
        "Whether it is fast was not measured: GPU of a test has no room for the inputs (CUDA out of"
        " memory)." in verdict.message
    )


def test_a_launch_that_does_not_fit_is_never_timed(tmp_path, gpu):
    verdict = check(EXERCISE, solution(tmp_path, ("ROWS = max(1, 4096 // BLOCK)", "ROWS = 1")))
    assert verdict.cause == "too_little_under_way" and not gpu.launches


def test_a_class_is_never_graded_by_a_clock(tmp_path, gpu):
    gpu.shares = dict.fromkeys((256, 1024, 2048, 4096, 8192), 0.5)
    hidden = check(EXERCISE, solution(tmp_path), secret="a secret of a whole class")
    assert (
        hidden.passed
        and "a check with hidden cases times nothing" in hidden.message
        and not gpu.launches
    )
    assert not check(EXERCISE, solution(tmp_path)).passed  # the clock that would have refused it


@pytest.mark.parametrize("seed", range(5))
def test_hidden_launches_are_of_the_lengths_that_the_exercise_names(seed):
    for plan in make_plans(EXERCISE, 0, Secret(f"secret {seed}")):
        N, odd = plan.case.N, plan.case.N
        while odd % 2 == 0:
            odd //= 2
        assert (odd == 1 and 128 <= N <= 16384) or (odd == 3 and 192 <= N <= 3072), N
        assert plan.arguments[1] == N and plan.case.M >= 2


def test_a_machine_that_cannot_compile_gives_no_verdict(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise EnvironmentFault("Triton's ptxas cannot run here")

    launch.predict.cache_clear()
    monkeypatch.setattr(launch, "compile_report", refuse)
    with pytest.raises(
        EnvironmentFault, match="15b was not checked: Triton's ptxas cannot run here"
    ):
        check(EXERCISE, solution(tmp_path))


def test_what_is_told_of_a_wrong_launch_names_the_call(tmp_path):
    verdict = check(
        EXERCISE,
        solution(tmp_path, ("return ROWS, BLOCK, num_warps", "return 3, BLOCK, num_warps")),
    )
    assert verdict.cause == "launch_not_legal"
    assert (
        "`choose_launch(40, 512, 2)` returned ROWS = 3, BLOCK = 512, num_warps = "
        in verdict.message
    )


@pytest.mark.parametrize("rows", ["4.0", "2.5", "M / M"])
def test_a_launch_of_numbers_that_are_no_integers_is_refused_as_triton_refuses_it(tmp_path, rows):
    changed = ("return ROWS, BLOCK, num_warps", f"return {rows}, BLOCK, num_warps")
    verdict = check(EXERCISE, solution(tmp_path, changed))
    assert (
        verdict.cause == "wrong_return" and "asked for: a whole number, an `int`" in verdict.message
    )
    whole = (
        "return ROWS, BLOCK, num_warps",
        "import numpy as np\n    return np.int64(ROWS), BLOCK, num_warps",
    )
    assert check(EXERCISE, solution(tmp_path, whole)).passed


@pytest.mark.skipif(course_lib.MODE != "gpu", reason="needs a GPU")
def test_a_gpu_times_the_solution_at_nine_tenths_and_the_first_launch_below(tmp_path):
    verdict = check(EXERCISE, solution(tmp_path))
    assert verdict.passed, verdict.message
    assert sum(case.name.startswith("time of ") for case in verdict.cases) == 5
    first = clock.time_launch(clock.MatrixShape(131072, 256), launch.LaunchChoice(1, 16384, 32))
    assert not first.passes and first.share < 0.5
