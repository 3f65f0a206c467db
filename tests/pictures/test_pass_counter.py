"""The pass counter: its kernels are right, its counts come from them, a process that compiles gets
the same ones, and the browser shows them."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.lessons import pass_counter
from course_lib.lessons.pictures.pass_counter import model as counting
from course_lib.lessons.pictures.pass_counter.model import (
    ALGORITHMS,
    COLUMNS,
    OWN,
    ROWS,
    count,
    count_own,
    run,
)

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
OWN_PASSES = {
    "06a": (1, 0),
    "05a": (2, 0),
    "05b": (1, 0),
    "07a": (3, 1),
    "08a": (1, 1),
    "09a": (2, 2),
}


@pytest.fixture
def exercises(tmp_path, monkeypatch):
    """A learner's folder with every exercise solved that can be counted, but 07a untouched."""
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path))
    for name in OWN:
        exercise = catalog.get(name)
        text = (
            texts.make_unsolved_text(exercise) if name == "07a" else texts.read_solution(exercise)
        )
        (tmp_path / f"{exercise.file}.py").write_text(text)
    return tmp_path


def _solve(folder, name: str) -> None:
    exercise = catalog.get(name)
    (folder / f"{exercise.file}.py").write_text(texts.read_solution(exercise))


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
    assert made.launches == (7 if algorithm == "naive" else 1)
    assert made.bytes(7, 2) == sum(PASSES[algorithm]) * 7 * N * 2 + (
        7 * 32 if algorithm == "naive" else 0
    )


def test_the_sweeps_are_in_order_and_named():
    sweeps = [(sweep.launch, sweep.kind, sweep.tensor) for sweep in count("naive", 100).sweeps]
    assert sweeps == [
        (0, "load", "x"), (1, "load", "x"), (1, "store", "d"), (2, "load", "d"), (2, "store", "s"),
        (3, "load", "s"),
        (6, "load", "d"), (6, "store", "y"),
    ]  # fmt: skip
    assert [sweep.tensor for sweep in count("two_pass", 100).sweeps] == ["x", "x", "x", "y"]


def test_the_accesses_of_a_row_are_in_the_order_of_the_kernel():
    made = count("one_pass", 8192)  # eight blocks for the sums, then each block is read and written
    assert made.order == (0,) * 8 + (1, 2) * 8
    assert count("resident", 8192).order == (0, 1)
    assert "tl.load(x_ptr" in made.sweeps[0].code and made.sweeps[2].code.startswith(
        "tl.store(y_ptr"
    )


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
def test_a_process_that_compiles_gets_the_same_counts_from_a_second_one(monkeypatch):
    here = [count(algorithm, 100, 64) for algorithm in ALGORITHMS]
    counting._count.cache_clear()
    compiling = dataclasses.replace(runtime.current(), mode="gpu")
    monkeypatch.setattr(runtime, "_chosen", compiling)
    assert [count(algorithm, 100, 64) for algorithm in ALGORITHMS] == here


def test_counting_again_costs_nothing():
    assert functools.reduce(
        lambda same, N: same and count("copy", N) is count("copy", N), COLUMNS, True
    )


def test_a_learners_kernel_is_counted(exercises):
    _solve(exercises, "07a")
    for name, passes in OWN_PASSES.items():
        made = count_own(name, 1500)
        assert (made.passes("load"), made.passes("store")) == passes
    path = exercises / f"{catalog.get('07a').file}.py"
    text = path.read_text()
    # a loop more: the same line of code, and another pass
    again = "    mean = tl.sum(total, axis=0) / N\n"
    loop = text[text.index("    for start in range(0, N, BLOCK):") : text.index(again)]
    path.write_text(text.replace(again, loop + again, 1))
    more = count_own("07a", 1500)
    assert (more.passes("load"), more.passes("store")) == (4, 1) and len(more.sweeps) == 5


def test_the_button_counts_a_learners_kernel_and_the_picture_before_stays_where_it_cannot(
    exercises,
):
    asking = pass_counter()
    before = asking.picture
    asking.controls["own"].value = "07a"
    asking.button.click()
    assert "still as the course wrote it" in asking.said.value and asking.picture is before
    _solve(exercises, "07a")
    asking.button.click()
    assert asking.error is None and "your 07a 4" in asking.picture.alt


def test_the_browser_sums_the_counts_up(show):
    shown = show(pass_counter().picture)
    for n in COLUMNS:
        for m in (1, 4096):
            for dtype, size in (("fp16", 2), ("fp32", 4)):
                state = shown.state | {"n": n, "m": m, "dtype": dtype, "bandwidth": 2000}
                for made in shown.call("explain", state):
                    want = count(made["algorithm"], n)
                    assert (made["passes"], made["reads"]) == (want.passes(), want.passes("load"))
                    assert made["moved"] == want.bytes(m, size)
                    assert made["us"] == pytest.approx(want.bytes(m, size) / 2e12 * 1e6)


def test_the_words_and_the_bytes(show):
    shown = show(pass_counter().picture)
    assert shown.title == "two-pass, blocked: 4 sweeps, 2 times those of a copy"
    assert (
        "3 sweeps for reading, 1 sweep for writing" in shown.caption
        and "A copy asks for 134 MB" in shown.caption
    )
    assert "95.9 µs" in shown.caption and "w and b left out" in shown.caption
    shown.set(m=1, n=100, dtype="fp32", algorithm="resident")
    assert shown.title == "two-pass, resident: 2 sweeps, as many as a copy makes"
    assert "The launches take longer: 10 µs" in shown.caption
    shown.set(algorithm="copy")
    assert "no kernel that reads x and writes y can make fewer" in shown.title


def test_a_bar_is_chosen_and_the_row_is_scrubbed_by_hand_and_keys(show):
    shown = show(pass_counter().picture)
    shown.grip("bar-naive").click()
    assert shown.title == "op by op: 8 sweeps, 4 times those of a copy"
    shown.drag("at", dx=200)
    moved = shown.state["at"]
    assert 8 < moved < 24 and "of 64 of the first row: " in shown.caption
    shown.grip("at").press("ArrowRight")
    assert shown.state["at"] == moved + 1
    shown.set(algorithm="resident")  # has two accesses, and no 17th
    assert "Access 2 of 2 of the first row: write y, by the line tl.store(y_ptr" in shown.caption


def test_every_control_moves_the_bars(show):
    shown = show(pass_counter().picture)
    piece = (
        "() =>"
        " [...document.querySelector('[data-picture]').stage.svg.querySelectorAll('[data-key=\"bar-two_pass\"]"  # noqa: E501
        " rect')].map(rect => rect.getAttribute('width')).join()"
    )
    seen = {shown.page.evaluate(piece)}
    for change in ({"m": 256}, {"n": 1024}, {"dtype": "fp32"}, {"bandwidth": 900}):
        shown.set(**change)
        now = shown.page.evaluate(piece)
        assert now not in seen
        seen.add(now)


def test_it_looks_right_everywhere(show):
    shown = show(pass_counter().picture)
    shown.set(at=19)
    shown.shoot("pass_counter")
    shown.set(algorithm="naive", m=256, at=30)
    shown.shoot("pass_counter-naive")
    shown.assert_clear(
        [
            {"m": m, "n": n, "bandwidth": bandwidth, "algorithm": algorithm, "at": m % 7}
            for m, n, bandwidth, algorithm in itertools.product(
                ROWS, (COLUMNS[0], COLUMNS[-1]), (100, 8000), ("copy", "naive")
            )
        ]
    )


@pytest.mark.parametrize("wrong", [{"algorithm": "fast"}, {"M": 0}, {"N": 0}, {"dtype": "fp8"}])
def test_what_it_cannot_count_is_refused(wrong):
    with pytest.raises(CourseError, match="the pass counter"):
        pass_counter(**wrong)


def test_long_rows_have_no_resident_kernel(show):
    shown = show(pass_counter("copy", N=65536).picture)
    shown.set(algorithm="two_pass", at=150)
    assert (
        "resident" not in shown.drawn
        and "Access 150 of 256" in shown.caption
        and shown.list_overlaps() == []
    )
