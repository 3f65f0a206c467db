"""What lessons 07 and 08 ask of a LayerNorm forward kernel: its accesses and its instructions, the
course's and the learner's."""

from __future__ import annotations

import shutil

import pytest

from course_lib.authoring import exercises
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.pictures.access_map.forward import KERNELS, forward_map
from course_lib.lessons.pictures.compiled_kernel.model import compile_forward


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The learner's folder, with nothing solved."""
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path))
    exercises.write(tmp_path)
    return tmp_path


def count_passes(asking: AskingPicture) -> dict[str, dict[str, float]]:
    return {tensor["name"]: tensor["times"] for tensor in asking.picture.data["tensors"]}


@pytest.mark.parametrize(("first", "reads_x", "reads_w"), [("blocked", 3, 4), ("resident", 1, 2)])
def test_the_map_shows_the_first_kernel_and_the_learners_once_it_is_written(
    own, first, reads_x, reads_w
):
    yours = {"blocked": "yours, 07a", "resident": "yours, 08a"}[first]
    shown = forward_map(first, yours)
    passes = count_passes(shown)
    assert (passes["x"]["read"], passes["y"]["write"], passes["w"]["read"]) == (reads_x, 1, reads_w)
    shown.controls["kernel"].value = yours
    shown.ask()
    assert (
        isinstance(shown.error, CourseError)
        and f"Do exercise {yours[-3:]} first" in shown.said.value
    )
    for file in ("ex07a_layer_norm_forward.py", "ex08a_layer_norm_resident.py"):
        shutil.copy(paths.SOLUTIONS / file, own)
    shown.ask()
    assert shown.error is None
    assert (count_passes(shown)["x"]["read"], count_passes(shown)["w"]["read"]) == (
        reads_x,
        reads_w,
    )


def test_a_kernel_that_the_map_does_not_know_is_named():
    with pytest.raises(CourseError, match=rf"{KERNELS[0]}.*you asked for fused"):
        forward_map("fused")


def test_the_resident_kernel_is_compiled_for_the_rows_asked_for():
    assert set(compile_forward(N=8191).loads or ()) == {2} and set(
        compile_forward().loads or ()
    ) == {16}
    assert sum((compile_forward("blocked").loads or {}).values()) > sum(
        (compile_forward().loads or {}).values()
    )
