"""The pass counter: its kernels are right, its counts come from them, and a process that compiles gets the same ones."""

from __future__ import annotations

import functools
import os
import random
import subprocess
import sys

import pytest
import torch
from leftovers import kill_owner

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.worker import Launch, WorkerTimeout
from course_lib.lessons import pass_counter
from course_lib.lessons.pass_counter import model as counting
from course_lib.lessons.pass_counter.model import (
    ALGORITHMS,
    COLUMNS,
    _count_elsewhere,
    count,
    describe,
    model,
    run,
    title,
)
from course_lib.lessons.pass_counter.widget import draw

interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: it asks another for its counts"
)
PASSES = {
    "copy": (1, 1),
    "naive": (5, 3),
    "one_pass": (2, 1),
    "two_pass": (3, 1),
    "welford": (2, 1),
    "resident": (1, 1),
}


@pytest.mark.parametrize("shape", [(3, 1), (2, 129)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_counted_computes_what_it_should(algorithm, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(course_lib.DEVICE) + 2
    want = x if algorithm == "copy" else torch.nn.functional.layer_norm(x, shape[1:], eps=1e-5)
    torch.testing.assert_close(run(algorithm, x, BLOCK=64), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("N", [1, 1025, 8192])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_passes_are_whole_whatever_the_padding(algorithm, N):
    made = count(algorithm, N)
    assert (made.passes("load"), made.passes("store")) == PASSES[algorithm]
    assert made.launches == (5 if algorithm == "naive" else 1)
    assert made.bytes(7, 2) == sum(PASSES[algorithm]) * 7 * N * 2 + (7 * 16 if algorithm == "naive" else 0)


def test_the_sweeps_are_in_order_and_named():
    sweeps = [(sweep.launch, sweep.kind, sweep.tensor) for sweep in count("naive", 100).sweeps]
    assert sweeps == [
        (0, "load", "x"), (1, "load", "x"), (1, "store", "d"), (2, "load", "d"), (2, "store", "s"), (3, "load", "s"),
        (4, "load", "d"), (4, "store", "y"),
    ]  # fmt: skip
    assert [sweep.tensor for sweep in count("two_pass", 100).sweeps] == ["x", "x", "x", "y"]


def test_the_resident_kernel_needs_a_row_that_fits():
    with pytest.raises(CourseError, match="32768 is the limit"):
        count("resident", 40000)
    with pytest.raises(CourseError, match="32768 is the limit"):
        run("resident", torch.zeros(1, 40000, device=course_lib.DEVICE))


@pytest.mark.parametrize("arguments", [("quick", 8), ("copy", 0), ("copy", 8, 3)])
def test_what_cannot_be_counted_is_refused_in_words(arguments):
    with pytest.raises(CourseError, match="the pass counter knows copy"):
        count(*arguments)


@interpreted
def test_a_process_that_compiles_gets_the_same_counts_from_another_one_for_all_sizes_at_once():
    program = f"""
import dataclasses, sys
import course_lib
from course_lib.base import runtime
runtime._chosen = dataclasses.replace(runtime.current(), mode="gpu")
from course_lib.lessons import style
module = sys.modules["course_lib.lessons.pass_counter.model"]
module._trace = None  # there is no interpreter in such a process
first = module.count("two_pass", 100)
module._count_elsewhere = None
print(repr([first, *(module.count("naive", N) for N in {COLUMNS})]))
"""
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT), "COURSE_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == repr([count("two_pass", 100), *(count("naive", N) for N in COLUMNS)])


def test_a_second_process_that_fails_says_so(monkeypatch):
    failing = [sys.executable, "-c", "import sys; sys.exit('Traceback\\nImportError: no triton here')"]
    monkeypatch.setattr(counting, "_launch", lambda: Launch(failing, os.environ))
    with pytest.raises(CourseError, match=r"failed \(ImportError: no triton here\)"):
        _count_elsewhere({100}, 64)


def test_a_second_process_that_hangs_says_so(monkeypatch):
    def hang(*args, **kwargs):
        raise WorkerTimeout("gave no answer", "")

    monkeypatch.setattr(counting.Worker, "ask", hang)
    with pytest.raises(CourseError, match="took longer than 120 s"):
        _count_elsewhere({100}, 64)


@interpreted
@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 3.0) for seed in range(3)])
def test_a_killed_owner_leaves_no_counter(moment, tmp_path):
    program = """
import course_lib
from course_lib.lessons.pass_counter import model
print("now", flush=True)
model._count_elsewhere({100, 8192, 65536}, 64)
"""
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT), "COURSE_DEVICE": "cpu"}
    kill_owner(program, moment, tmp_path, environment)


def test_the_words_and_the_bytes():
    state = model("two_pass", 4096, 8192, "fp16")
    assert title(state) == "two-pass, blocked: 4 passes, 2 times a copy"
    assert "3 passes of reading, 1 of writing" in describe(state, 2800) and "268 MB, a copy for 134 MB" in describe(
        state, 2800
    )
    assert "95.9 µs" in describe(state, 2800)
    assert title(model("resident", 1, 100, "fp32")) == "two-pass, resident: 2 passes, as many as a copy"
    assert "nothing that reads x and writes y can do with less" in title(model("copy", 1, 100, "fp32"))
    assert state.bytes(state.count) == 2 * state.bytes(state.copy)
    doubled = model("two_pass", 4096, 8192, "fp32")
    assert doubled.bytes(doubled.count) == 2 * state.bytes(state.count)


def test_the_picture_says_all_it_shows():
    shown = draw(model("naive", 16, 1024, "fp32"), 1000)
    assert shown.png.startswith(b"\x89PNG") and shown.caption in shown.alt
    assert "copy 2, op by op 8, one-pass 3, two-pass, blocked 4, Welford, blocked 3, two-pass, resident 2" in shown.alt


def test_the_widget_follows_its_controls():
    widget = pass_counter()
    before = widget.picture
    widget.controls["algorithm"].value = "naive"
    assert widget.error is None and "8 passes" in widget.picture.alt and widget.picture.png != before.png
    widget.controls["N"].value = 100
    widget.controls["dtype"].value = "fp32"
    assert widget.error is None and "N = 100, fp32" in widget.caption
    long_rows = pass_counter("copy", N=65536)
    assert "resident" not in [value for _, value in long_rows.controls["algorithm"].options]


@pytest.mark.parametrize("wrong", [{"algorithm": "fast"}, {"M": 0}, {"N": 0}, {"dtype": "fp8"}])
def test_the_widget_refuses_what_it_cannot_count(wrong):
    with pytest.raises(CourseError, match="the pass counter"):
        pass_counter(**wrong)


def test_counting_again_costs_nothing():
    assert functools.reduce(lambda same, N: same and count("copy", N) is count("copy", N), COLUMNS, True)
