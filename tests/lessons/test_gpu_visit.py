"""Half an hour on a GPU: its notebook runs where there is a GPU and where there is none, and says
in words which GPU it met."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from notebook_runs import run_nbval

import course_lib
from course_lib import catalog
from course_lib.authoring import hosted, nbval
from course_lib.authoring.notebooks import read_source
from course_lib.authoring.page_proof import PageProof
from course_lib.base.errors import CourseError
from course_lib.base.runtime import Runtime
from course_lib.kernels.launch import device
from course_lib.lessons import gpu_visit

pytest.importorskip("nbval", reason="nbval is not installed; `make env` installs it")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs_under_nbval(tmp_path):
    """Unsolved, and then solved."""
    proof = PageProof(read_source(hosted.GPU_SOURCE, proof=True), (), True, ())
    wanted = nbval.Run((nbval.UNSOLVED, nbval.SOLVED), course_lib.MODE)
    nbval.lay_out(tmp_path, {hosted.GPU_SOURCE: proof}, wanted)
    expected = {"COURSE_EXPECT": wanted.expected, nbval.DEVICE: course_lib.MODE}
    run = run_nbval(tmp_path, cell_seconds=400, **expected)
    assert run.exit_code == 0, run.output[-6000:]


def test_it_visits_the_required_exercises_of_its_lessons():
    visited = gpu_visit.list_exercises()
    assert {exercise.lesson for exercise in visited} == set(gpu_visit.LESSONS)
    assert [exercise.id for exercise in visited] == [
        key for key in catalog.required() if key[:2] in gpu_visit.LESSONS
    ]


@pytest.fixture
def gpu(monkeypatch):
    """Stand in for a GPU of the compute capability and the GB/s that are given; tensors stay on the
    CPU."""

    def meet(name: str, capability: tuple[int, int], gbps: float) -> str:
        monkeypatch.setattr(course_lib, "MODE", "gpu")
        monkeypatch.setattr(course_lib, "DEVICE", "cpu")
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda at: name)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda at: capability)
        monkeypatch.setattr(device, "count_multiprocessors", lambda at: 100)
        monkeypatch.setattr(device, "find_bandwidth", lambda at: gbps / 100)
        return " ".join(gpu_visit.describe_gpu().split())

    return meet


def test_a_gpu_that_is_not_hopper_is_told_what_is_different(gpu):
    said = gpu("NVIDIA L4", (8, 9), 300)
    assert "NVIDIA L4: compute capability 8.9, 100 multiprocessors, memory of 300 GB/s" in said
    assert "no copies of whole tiles by hardware (TMA)" in said and "3350 GB/s" in said
    assert "No launch of the course was tuned on it: it takes those of the H100." in said
    newer = gpu("NVIDIA B200", (10, 0), 2000)
    assert (
        "newer than the one of the stored times" in newer
        and "TMA" not in newer
        and "No launch of the course was tuned on it" in newer
    )


def test_a_hopper_is_told_its_class(gpu):
    assert (
        "launches here are those of its class H100." in (said := gpu("NVIDIA H100", (9, 0), 2000))
        and "Different" not in said
    )
    assert "launches here are those of its class H200." in gpu(
        "NVIDIA H200", (9, 0), 4800 / 132 * 100
    )


def test_the_caption_has_the_values_of_the_dots_and_why_one_is_missing(gpu, monkeypatch):
    gpu("NVIDIA L4", (8, 9), 300)
    monkeypatch.setattr(
        gpu_visit,
        "_time_statistics",
        lambda kernels, N: dict.fromkeys([*kernels, "torch"], N / 1000),
    )
    monkeypatch.setattr(
        gpu_visit.runtime, "current", lambda: Runtime("gpu", "cuda", "NVIDIA L4", "found a GPU")
    )

    def load(exercise_id: str):
        if exercise_id == "05b":
            raise CourseError("your 05b does not pass yet; its panel says why.")
        return SimpleNamespace(two_pass_kernel=None)

    monkeypatch.setattr(gpu_visit.own_kernels, "load_passing", load)
    view = gpu_visit.show_statistics().data["views"][0]
    dots = {
        series["name"]: series["colour"]
        for series in view["panels"][0]["series"]
        if not series["line"]
    }
    assert dots == {"yours, 05a": "two_pass", "torch.var_mean, this GPU": "torch"}
    assert (
        "now on NVIDIA L4. yours, 05a: 1.02 at 1024, 4.10 at 4096, 16.38 at 16384."
        in view["caption"]
    )
    assert view["caption"].endswith(
        "No dots of yours: your 05b does not pass yet; its panel says why."
    )


def test_without_a_gpu_it_says_so_and_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(course_lib, "MODE", "cpu")
    monkeypatch.setattr(
        gpu_visit.runtime, "current", lambda: Runtime("cpu", "cpu", "x86_64", "no GPU found")
    )
    said = gpu_visit.describe_gpu()
    assert (
        "CPU mode (no GPU found)" in said
        and "Runtime, Change runtime type" in said
        and "first cell" in said
    )
    assert gpu_visit.train_norm() is None and "No GPU here" in capsys.readouterr().out
    for show in (gpu_visit.show_statistics, gpu_visit.show_forward, gpu_visit.show_backward):
        view = show().data["views"][0]
        assert view["caption"].endswith("No GPU here: the chart has stored times alone.")
        assert all(series["line"] for series in view["panels"][0]["series"])
