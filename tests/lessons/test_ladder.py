"""The ladder: each kernel that is passed has its time as a bar, or on a CPU its bytes in words."""

from __future__ import annotations

import pytest

from course_lib import catalog
from course_lib.authoring import exercises
from course_lib.catalog import texts
from course_lib.grading.verdict import FAIL, PASS, Verdict
from course_lib.learner import progress
from course_lib.lessons import ladder
from course_lib.lessons.pictures.kernel_roofline.model import OWN

pytestmark = pytest.mark.usefixtures("learner")


@pytest.fixture
def learner(own_exercises):
    exercises.write(own_exercises)


def hand_in(exercise_id: str, text: str | None = None, status: str = PASS) -> None:
    exercise = catalog.get(exercise_id)
    texts.find_file(exercise).write_text(text or texts.read_solution(exercise))
    progress.note_verdict(Verdict(exercise_id, status, "", "as the test wants it"))


def list_own(picture) -> dict[str, dict]:
    (panel,) = picture.data["views"][0]["panels"]
    return {name[:3]: bars[-1] for name, bars in panel["groups"]}


def test_a_lesson_shows_no_kernel_of_a_later_one():
    assert list(list_own(ladder("08"))) == [
        exercise_id for exercise_id in OWN if exercise_id <= "08z"
    ]
    assert list(list_own(ladder("13"))) == list(OWN)


def test_nothing_is_passed_at_first():
    shown = ladder("13")
    assert {bar["words"] for bar in list_own(shown).values()} == {"not passed yet"}
    assert "None of your kernels" in shown.data["views"][0]["title"]


@pytest.mark.skipif("__import__('course_lib').MODE == 'gpu'", reason="a GPU times the kernels")
def test_a_passed_kernel_has_its_bytes_over_the_least_in_words_and_no_bar_among_times():
    hand_in("08a")
    hand_in("07a")
    hand_in("06a", status=FAIL)
    shown = ladder("08")
    own = list_own(shown)
    assert own["08a"]["words"] == "passed: it moves 1.00 times the least bytes"
    assert own["07a"]["words"] == "passed: it moves 2.00 times the least bytes"
    assert not any(bar["parts"][0][0] for bar in own.values())
    assert (
        own["06a"]["words"] == "not passed yet"
        and shown.data["views"][0]["title"] == "2 of 3 kernels passed"
    )


@pytest.mark.skipif("__import__('course_lib').MODE == 'gpu'", reason="a GPU times the kernels")
def test_a_kernel_that_was_broken_after_its_pass_says_what_stopped_it():
    good = texts.read_solution(catalog.get("08a"))
    hand_in("08a", good.replace("tl.load(x_ptr", "tl.load(no_such_name"))
    bar = list_own(ladder("08"))["08a"]
    assert (
        not bar["parts"][0][0]
        and "your kernel of 08a could not be traced" in bar["words"]
        and "no_such_name" in bar["words"]
    )
    texts.find_file(catalog.get("08a")).unlink()
    assert "08a" in list_own(ladder("08"))["08a"]["words"]
