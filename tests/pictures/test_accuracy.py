"""The accuracy picture: its model against the bounds, what it makes of a reader's kernels, broken
ones included, and the browser."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

import course_lib
from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.lessons import accuracy

module = importlib.import_module("course_lib.lessons.lesson05.accuracy.model")
AT_1000, AT_10000 = 6, 8


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


def _error(state, key: str) -> float:
    return {curve.key: curve.errors for curve in state.curves}[key][AT_1000]


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
            (ratio > 0.99 * np.array(module.RATIOS)[:, None])
            & (ratio < 1.11 * np.array(module.RATIOS)[:, None])
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
        {"learner_ids": ["07a"]},
    ],
)
def test_a_setting_that_there_is_not_is_refused(wrong):
    with pytest.raises(CourseError, match="accuracy knows"):
        module.model(**wrong)


def test_a_readers_right_kernels_are_drawn_beside_the_courses(exercises):
    for name in ("05a", "05b"):
        solved(exercises, name)
    state = module.model("var", 64, 256, learner_ids=("05a", "05b"))
    assert not state.notes and [curve.key for curve in state.curves][-2:] == ["05a", "05b"]
    assert _error(state, "05a") < 1e-6 and _error(state, "05b") < 1e-3


def test_a_readers_wrong_kernel_shows_its_error_and_a_changed_file_is_run_again(exercises):
    solved(
        exercises, "05a", ("deviation = tl.where(cols < N, x - mean, 0.0)", "deviation = x - mean")
    )
    padded = module.model("var", 64, 256, learner_ids=("05a",))
    assert _error(padded, "05a") > 1e3 and not padded.notes
    solved(exercises, "05a")
    assert _error(module.model("var", 64, 256, learner_ids=("05a",)), "05a") < 1e-6


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ((), "still as the course wrote it"),
        ((("tl.sum(squares, axis=0) / N", "tl.sum(squares, axis=0 / N"),), "is not valid Python"),
        ((("squares += deviation * deviation", "squares += devation * deviation"),),
            "`devation` is used"),
        ((("squares += deviation * deviation", "squares += tl.dot(deviation, deviation)"),),
            "line"),
        ((("    tl.store(var_ptr + row, var)\n", ""),), "did not store var"),
        pytest.param(
            (("mask=cols < N, other=0.0).to(tl.float32)\n        deviation",
                "mask=cols < N + 9999, other=0.0).to(tl.float32)\n        deviation"),),
                "OutOfBounds",
            marks=pytest.mark.skipif(course_lib.MODE != "cpu",
                reason="a compiled kernel reads past the end and nobody sees it"),
        ),
    ],
    ids=["unsolved", "syntax", "name", "raises", "not stored", "outside"],
)  # fmt: skip
def test_a_broken_kernel_gives_words(exercises, edits, words):
    if edits:
        solved(exercises, "05a", *edits)
    state = module.model("var", 64, 256, learner_ids=("05a",))
    (note,) = state.notes
    assert (
        note.startswith("your 05a gave nothing to draw: ")
        and words in note
        and "Traceback" not in note
    )
    assert [curve.key for curve in state.curves] == list(module.ALGORITHMS)
    assert module.make_data("var", 64, 256, ["05a"])["notes"] == [note]


def test_a_missing_file_gives_words(exercises):
    (exercises / "ex05b_welford_statistics.py").unlink()
    (note,) = module.model("var", 64, 256, learner_ids=("05b",)).notes
    assert "there is no file ex05b_welford_statistics.py" in note


def test_the_button_runs_the_readers_kernels_and_other_rows(exercises):
    asking = accuracy(n=64)
    asking.controls["own_05a"].value = True
    asking.button.click()
    assert (
        asking.error is None and "still as the course wrote it" in asking.picture.data["notes"][0]
    )
    solved(exercises, "05a")
    asking.controls["n"].value = 512
    asking.button.click()
    assert asking.picture.data["n"] == 512 and not asking.picture.data["notes"]
    assert "your 05a" in asking.picture.alt and not asking.button.disabled


def test_the_browser_has_the_models_numbers(exercises, show):
    solved(exercises, "05b")
    asking = accuracy(n=64)
    asking.controls["own_05b"].value = True
    asking.ask()
    shown = show(asking.picture)
    for quantity in module.QUANTITIES:
        for rows in module.ROWS:
            for chosen in module.ALGORITHMS:
                want = module.model(quantity, 64, 256, rows, chosen, ("05b",))
                seen = shown.call(
                    "explain",
                    shown.state
                    | {"quantity": quantity, "rows": rows, "chosen": chosen, "ratio": AT_10000},
                )
                assert [curve["key"] for curve in seen["curves"]] == [
                    curve.key for curve in want.curves
                ]
                for curve, right in zip(seen["curves"], want.curves, strict=True):
                    np.testing.assert_allclose(curve["errors"], right.errors, rtol=1e-4)
                np.testing.assert_allclose(seen["bound"], want.bound, rtol=1e-4)
    error = shown.call("explain", shown.state)["curves"][0]
    assert error["digits"] == pytest.approx(max(-np.log10(error["error"]), 0))


def test_a_hand_and_the_keys_move_the_mean_and_choose_a_bound(show):
    shown = show(accuracy(n=64).picture)
    shown.set(ratio=AT_10000)
    assert (
        shown.title == "One-pass has no digit left at mean/std = 10000"
        and "The bound of one-pass at this mean/std is " in shown.caption
    )
    shown.drag("ratio", dx=-600)
    assert shown.state["ratio"] == 0 and shown.title.endswith(
        "every kernel keeps at least four digits"
    )
    shown.grip("ratio").press("ArrowRight")
    assert shown.state["ratio"] == 1 and "in 4 rows at mean/std = 3.2:" in shown.caption
    shown.grip("curve-welford").press("Enter")
    assert (
        shown.state["chosen"] == "welford"
        and "The bound of Welford at this mean/std is " in shown.caption
    )
    shown.set(quantity="y", rows="loud")
    assert "absolute error of y" in shown.caption and "8 standard deviations out" in shown.caption


def test_it_looks_right_everywhere(exercises, show):
    for name in ("05a", "05b"):
        solved(exercises, name)
    asking = accuracy()
    asking.controls["own_05a"].value = asking.controls["own_05b"].value = True
    asking.ask()
    shown = show(asking.picture)
    shown.set(ratio=AT_10000, chosen="welford")
    shown.shoot("accuracy")
    shown.set(quantity="y", rows="loud", chosen="one_pass", ratio=10)
    shown.shoot("accuracy-y")
    shown.assert_clear(
        [
            {"quantity": quantity, "rows": rows, "chosen": chosen, "ratio": ratio}
            for quantity, rows, chosen, ratio in itertools.product(
                module.QUANTITIES, module.ROWS, module.ALGORITHMS, (0, 5, 10)
            )
        ]
    )


@pytest.mark.parametrize("wrong", [{"quantity": "std"}, {"n": 100}, {"block": 7}])
def test_what_it_cannot_show_is_refused(wrong):
    with pytest.raises(CourseError, match="accuracy knows"):
        accuracy(**wrong)
