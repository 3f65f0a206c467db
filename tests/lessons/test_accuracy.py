"""The accuracy widget: its model against the bounds, its words, and what it makes of a reader's kernels, broken ones included."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import course_lib
from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.lessons import accuracy
from course_lib.lessons.accuracy.widget import draw

module = importlib.import_module("course_lib.lessons.accuracy.model")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def exercises(tmp_path, monkeypatch):
    """A learner's folder with the unsolved exercises."""
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path))
    for name in ("05a", "05b"):
        exercise = catalog.get(name)
        (tmp_path / f"{exercise.file}.py").write_text(texts.make_unsolved_text(exercise))
    return tmp_path


def solved(folder, name: str, *edits: tuple[str, str]) -> None:
    exercise = catalog.get(name)
    text = texts.read_solution(exercise)
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / f"{exercise.file}.py").write_text(text)


@pytest.mark.parametrize("rows", module.ROWS)
@pytest.mark.parametrize("quantity", module.QUANTITIES)
def test_no_curve_passes_its_bound(quantity, rows):
    for chosen in module.ALGORITHMS:
        state = module.model(quantity, 64, 256, rows, chosen)
        errors = {curve.key: curve.errors for curve in state.curves}[chosen]
        assert len(errors) == len(state.bound) == len(module.RATIOS)
        for error, limit in zip(errors, state.bound, strict=True):
            assert error <= limit or (np.isnan(error) and np.isinf(limit))


def test_the_rows_have_the_mean_and_spread_that_the_axis_says():
    for rows in module.ROWS:
        x = module.data(512, rows).astype(np.float64)
        ratio = (x.mean(axis=1) / x.std(axis=1)).reshape(len(module.RATIOS), module.SAMPLES)
        assert np.all(
            (ratio > 0.99 * np.array(module.RATIOS)[:, None]) & (ratio < 1.11 * np.array(module.RATIOS)[:, None])
        )
    far = (x[:, 0] - x.mean(axis=1)) / x.std(axis=1)
    assert np.all((far > 0.95 * 511**0.5) & (far <= 1.01 * 511**0.5))


def test_errors_are_those_of_the_statistics_that_were_stored():
    x = module.data(64)
    exact = x.astype(np.float64)
    mean, var = exact.mean(axis=1), exact.var(axis=1)
    assert max(module.errors("var", x, mean.astype(np.float32), var.astype(np.float32))) < 1e-7
    assert np.allclose(module.errors("var", x, mean, 1.5 * var), 0.5) and np.allclose(
        module.errors("rstd", x, mean, 4 * var), 0.5, rtol=1e-4
    )
    assert all(np.isnan(module.errors("rstd", x, mean, -var)))
    assert min(module.errors("y", x, mean + 0.5, var)) > 0.49


def test_one_pass_loses_two_digits_a_decade_and_welford_one():
    errors = {curve.key: curve.errors for curve in module.model("var").curves}
    assert 300 < errors["one_pass"][6] / errors["one_pass"][2] < 1e6
    assert 10 < errors["welford"][8] / errors["welford"][2] < 1e5
    assert errors["two_pass"][6] < 1e-6


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantity": "std"},
        {"n": 100},
        {"block": 3},
        {"rows": "odd"},
        {"chosen": "naive"},
        {"ratio": 99},
        {"own": ["06a"]},
    ],
)
def test_a_setting_that_there_is_not_is_refused(wrong):
    with pytest.raises(CourseError, match="accuracy knows"):
        module.model(**wrong)


def test_the_words_say_what_the_picture_shows():
    picture = draw(module.model("var", 512, 256, ratio=8))
    assert picture.png.startswith(PNG) and picture.alt.startswith("One-pass has no digit left at mean/std = 10000")
    assert "Welford" in picture.caption and "cannot be off by more than" in picture.caption
    assert module.title(module.model("var", 512, 256, ratio=0)).endswith("every kernel keeps at least four digits")


def test_a_readers_right_kernels_are_drawn_beside_the_courses(exercises):
    for name in ("05a", "05b"):
        solved(exercises, name)
    state = module.model("var", 64, 256, own=("05a", "05b"))
    assert not state.notes and [curve.key for curve in state.curves][-2:] == ["05a", "05b"]
    assert state.error("05a") < 1e-6 and state.error("05b") < 1e-3
    assert "your 05b" in draw(state).caption


def test_a_readers_wrong_kernel_shows_its_error_and_a_changed_file_is_run_again(exercises):
    solved(exercises, "05a", ("deviation = tl.where(cols < N, x - mean, 0.0)", "deviation = x - mean"))
    padded = module.model("var", 64, 256, own=("05a",))
    assert padded.error("05a") > 1e3 and not padded.notes
    solved(exercises, "05a")
    assert module.model("var", 64, 256, own=("05a",)).error("05a") < 1e-6


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ((), "still as the course wrote it"),
        ((("tl.sum(squares, axis=0) / N", "tl.sum(squares, axis=0 / N"),), "is not valid Python"),
        ((("squares += deviation * deviation", "squares += devation * deviation"),), "`devation` is used"),
        ((("squares += deviation * deviation", "squares += tl.dot(deviation, deviation)"),), "line"),
        ((("    tl.store(var_ptr + row, var)\n", ""),), "did not store var"),
        pytest.param(
            (("mask=cols < N, other=0.0).to(tl.float32)\n        deviation", "mask=cols < N + 9999, other=0.0).to(tl.float32)\n        deviation"),), "OutOfBounds",
            marks=pytest.mark.skipif(course_lib.MODE != "cpu", reason="a compiled kernel reads past the end and nobody sees it"),
        ),
    ],
    ids=["unsolved", "syntax", "name", "raises", "not stored", "outside"],
)  # fmt: skip
def test_a_broken_kernel_gives_words(exercises, edits, words):
    if edits:
        solved(exercises, "05a", *edits)
    state = module.model("var", 64, 256, own=("05a",))
    (note,) = state.notes
    assert note.startswith("your 05a gave nothing to draw: ") and words in note and "Traceback" not in note
    assert note in draw(state).caption and [curve.key for curve in state.curves] == list(module.ALGORITHMS)


def test_a_missing_file_gives_words(exercises):
    (exercises / "ex05b_welford_statistics.py").unlink()
    (note,) = module.model("var", 64, 256, own=("05b",)).notes
    assert "there is no file ex05b_welford_statistics.py" in note


def test_the_widget_follows_its_controls_and_resets(exercises):
    widget = accuracy(n=64)
    first = widget.caption
    widget.controls["ratio"].value = 10
    assert "mean/std = 100000" in widget.caption and widget.caption != first
    widget.controls["own_05a"].value = True
    assert "still as the course wrote it" in widget.caption and widget.error is None
    widget.controls["quantity"].value = "y"
    assert "absolute error of y" in widget.caption
    widget.reset()
    assert widget.caption == first and widget.still().png.startswith(PNG)
    with pytest.raises(CourseError):
        accuracy(block=7)
