"""The block stepper: its model and the browser's arithmetic against the float64 reference, its
words, and a hand that moves it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_lib.base.errors import CourseError
from course_lib.lessons import block_stepper
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE, steps, write_rows
from course_lib.norms import reference

# ---- the model


def _reference(x, kind, eps, w, b):
    mean = x.mean(axis=1) if kind == "layer_norm" else np.zeros(len(x))
    spread = ((x - mean[:, None]) ** 2).mean(axis=1)
    rstd = 1 / np.sqrt(spread + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from(["layer_norm", "rms_norm"]),
    block=st.sampled_from([1, 2, 4, 8, 16, 32]),
)
def test_stepper_ends_at_the_float64_reference(data, kind, block):
    m, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 19))
    numbers = st.floats(-100, 100, width=32)
    x = data.draw(arrays(np.float64, (m, n), elements=numbers))
    w = data.draw(arrays(np.float64, n, elements=numbers))
    b = data.draw(arrays(np.float64, n, elements=numbers)) if kind == "layer_norm" else None
    frames = steps(x, block, kind, eps=1e-3, w=w, b=b)
    y, mean, rstd = _reference(x, kind, 1e-3, w, 0.0 if b is None else b)
    blocks = -(-n // block)
    assert len(frames) == m * blocks * (3 if kind == "layer_norm" else 2)
    rows = frames[-1].rows
    np.testing.assert_allclose([row.y for row in rows], y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([row.rstd for row in rows], rstd, rtol=1e-9)
    assert {row.status for row in rows} == {"done"}
    if kind == "layer_norm":
        np.testing.assert_allclose([row.mean for row in rows], mean, rtol=1e-9, atol=1e-9)


def test_stepper_gives_the_worked_example():
    frames = steps(EXAMPLE, 4, "rms_norm")
    first, second = [frame for frame in frames if frame.row == 0 and frame.phase == "squares"]
    assert (first.running, second.running, sum(second.added)) == (14.25, 21.75, 7.5)
    assert [row.squares for row in frames[-1].rows] == [21.75, 38.75, 37.25]
    np.testing.assert_allclose(
        frames[-1].rows[0].y, [1.21, -0.61, 1.82, 0.30, -0.30, 0.91, -1.21, 0.61], atol=0.005
    )
    assert frames[-1].rows[0].rms == pytest.approx(1.649, abs=5e-4)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 21), block=st.sampled_from([2, 4, 8, 16]), mean=st.floats(-50, 50))
def test_unmasked_deviation_adds_exactly_pad_mean_squared_over_n(n, block, mean):
    x = np.random.default_rng(n).normal(mean, 1.0, (1, n))
    frames = steps(x, block, "layer_norm", mask_deviation=False)
    got, right = frames[-1].rows[0].spread, frames[-1].right_spread
    pad = -(-n // block) * block - n
    assert right == pytest.approx(x.var(), rel=1e-12)
    assert got - right == pytest.approx(pad * x.mean() ** 2 / n, rel=1e-9, abs=1e-9)
    tail = [frame for frame in frames if frame.phase == "deviation"][-1]
    assert [
        lane for lane, off in zip(tail.lanes, tail.masked, strict=True) if off
    ] == pytest.approx([-x.mean()] * pad)


def test_stepper_frames_tell_a_row_in_order():
    frames = steps(EXAMPLE, 4, "layer_norm")
    assert [frame.phase for frame in frames[:6]] == [
        "sum",
        "sum",
        "deviation",
        "deviation",
        "normalise",
        "normalise",
    ]
    assert [frame.rows[0].status for frame in frames[:6]] == [
        "summing",
        "summing",
        "variance",
        "variance",
        "normalising",
        "done",
    ]
    assert frames[0].rows[0].mean is None and frames[1].rows[0].mean == 0.5625
    assert frames[4].rows[0].y[3] is not None and frames[4].rows[0].y[4] is None
    assert frames[0].rows[1].status == "waiting"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0], 4, "rms_norm"), "shape (M, N)"),
        (([[1.0]], 3, "rms_norm"), "power of two"),
        (([[1.0]], 2, "batch_norm"), "layer_norm and rms_norm"),
        (([[1.0]], 2, "rms_norm", -1.0), "cannot be negative"),
        (([[1.0]], 2, "rms_norm", 1e-5, None, [1.0]), "no bias"),
        (([[1.0]], 2, "layer_norm", 1e-5, [1.0, 2.0]), "each of the 1 columns"),
    ],
)
def test_stepper_says_what_does_not_fit(arguments, words):
    with pytest.raises(CourseError, match=words.replace("(", r"\(").replace(")", r"\)")):
        steps(*arguments)


# ---- the picture

PAIR = [[8.0, 11, 12, 9, 10], [-2, 1, 2, -1, 0]]  # the same deviations around 10 and around 0


@pytest.fixture
def shown(show):
    return show(block_stepper("layer_norm"))


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_the_browser_walks_as_the_model_does(shown, kind):
    x = np.random.default_rng(3).normal(5, 2, (2, 11)).round(3)
    for block, masked, row in itertools.product((2, 4, 16), (True, False), (0, 1)):
        changes = {
            "kind": kind,
            "typed": write_rows(x),
            "n": 11,
            "block": block,
            "masked": masked,
            "row": row,
            "eps": 1e-3,
        }
        told = shown.call("explain", shown.state | changes)["frames"]
        want = [
            frame
            for frame in steps(x, block, kind, 1e-3, mask_deviation=masked)
            if frame.row == row
        ]
        blocks = [frame for frame in told if frame["start"] is not None]
        for got, frame in zip(blocks, want, strict=True):
            assert got["phase"] == frame.phase and tuple(got["columns"]) == frame.columns
            assert got["lanes"] is None or got["lanes"] == pytest.approx(frame.accumulator)
            if frame.phase != "normalise":
                assert got["held"] == pytest.approx(frame.lanes) and got["added"] == pytest.approx(
                    frame.added
                )
        done = want[-1].rows[row]
        assert told[-1]["y"] == pytest.approx(done.y) and told[-1]["rstd"] == pytest.approx(
            done.rstd
        )
        if masked:
            y = (
                reference.layer_norm(x, eps=1e-3).y
                if kind == "layer_norm"
                else reference.rms_norm(x, eps=1e-3).y
            )
            assert told[-1]["y"] == pytest.approx(y[row].tolist())


def test_one_program_is_scrubbed_by_hand_by_keys_and_by_buttons(shown):
    assert "Each lane adds x of columns 0 to 3" in shown.title
    shown.grip("step-2").click()
    assert shown.state["step"] == 2 and "so the mean is 0.5625" in shown.title
    shown.drag("step", dx=64 * 3)
    assert shown.state["step"] == 5 and "so the variance is 2.402" in shown.title
    shown.grip("step").press("ArrowRight")
    assert "y of columns 0 to 3 is written" in shown.title
    shown.page.get_by_role("button", name="Step", exact=True).click()
    assert shown.title == "Row 0 is done"


def test_a_number_of_the_row_is_dragged_and_moved_by_keys(shown):
    shown.set(step=2)
    shown.grip("x-4").press("ArrowUp")
    assert shown.call("explain", shown.state)["x"][4] == 0 and "mean is 0.625" in shown.title
    shown.drag("x-0", dx=0, dy=-20)
    assert shown.call("explain", shown.state)["x"][0] > 2
    assert shown.page.locator('[data-control="typed"] input').input_value() == shown.state["typed"]


def test_the_padded_lanes_are_found_when_n_is_dragged(shown):
    shown.set(typed=write_rows(PAIR), n=5, masked=False, step=4)
    assert "3 lanes past the end add mean² to the sum of squares" in shown.title
    assert "3 lanes lie past column 4, loaded 0, and hold 0 − mean = -10." in shown.caption
    shown.grip("step").press("ArrowRight")
    assert (
        "the variance is 62, and should be 2" in shown.title
        and "the lanes past the end added 60" in shown.caption
    )
    shown.set(row=1)
    assert "so the variance is 2" in shown.title and "should" not in shown.title
    shown.set(row=0, step=7)
    assert shown.title == "Row 0 is done, with the wrong variance"
    shown.page.get_by_label("mask the deviation").click()
    assert shown.title == "Row 0 is done"
    shown.page.get_by_label("mask the deviation").click()
    shown.grip("n").press("ArrowLeft")
    assert shown.state["n"] == 4 and shown.title == "Row 0 is done"  # a whole block has no padding


def test_rows_are_typed(shown):
    field = shown.page.locator('[data-control="typed"] input')
    field.fill("1 2 6; 101, 102 106;")
    field.press("Enter")
    first, second = (
        shown.call("explain", shown.state | {"row": row})["frames"][-1]["y"] for row in (0, 1)
    )
    assert first == pytest.approx(second, rel=1e-4)  # a shift changes nothing, but for eps
    for words, problem in {
        "": "There is no row yet", " ; ;": "There is no row yet",
        "1 2; 3": "your rows have 2 and 1 columns", "1 two": "two cannot be drawn",
        "1 nan": "nan cannot be drawn", "1e7": "1e7 cannot be drawn",
        " ".join(["1"] * 17): "16 columns", ";".join(["1"] * 7): "6 rows",
    }.items():  # fmt: skip
        field.fill(words)
        field.press("Enter")
        assert problem in shown.caption and shown.title == "These rows cannot be drawn"
    field.fill(".002 -.002")
    field.press("Enter")
    shown.set(eps=1e-3, step=3)
    assert "eps changes this result: without eps, rstd would be 500." in shown.caption
    shown.set(typed="0 0 0", eps=0)
    assert "0 times infinity is NaN" in shown.caption and "NaN" not in shown.title
    shown.page.get_by_role("button", name="worked example").click()
    assert "x has 3 rows of 8 columns" in shown.caption


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.002, "2·10⁻³"), (-0.0009, "-9·10⁻⁴"), (0.01, "0.01"), (1e-16, "0"), (0.5625, "0.56"),
        (14.25, "14.25"), (-0.04, "-0.04"),
        (10404, "10404"), (1234.5, "1235"), (250000, "2.5·10⁵"), (-1.5, "-1.5"),
    ],
)  # fmt: skip
def test_a_cell_has_one_rule_for_its_number(shown, value, words):
    assert shown.call("short", value) == words


def test_it_looks_right_everywhere(shown):
    example = write_rows(EXAMPLE)
    large = write_rows(np.random.default_rng(1).normal(1000, 400, (6, 16)).round(2))
    settings = [
        (example, 8, 4),
        (example, 5, 16),
        (write_rows(PAIR), 5, 4),
        (large, 16, 2),
        (large, 13, 16),
        ("7", 1, 2),
    ]
    states = []
    for (typed, n, block), kind in itertools.product(settings, ("layer_norm", "rms_norm")):
        shown.set(kind=kind, typed=typed, n=n, block=block, masked=False, row=0)
        frames = len(shown.call("explain", shown.state)["frames"])
        states += [shown.state | {"step": step} for step in range(0, frames, 2)]
    shown.assert_clear(states)
    shown.set(typed=write_rows(PAIR), n=5, block=4, kind="layer_norm", masked=False, step=4)
    shown.shoot("block_stepper")


def test_a_kernel_of_one_block_loads_once_and_cannot_be_changed(show):
    shown = show(
        block_stepper(
            "layer_norm", [[11, 12, 14, 15, 16]], 8, mask_deviation=False, one_block=True, eps=0
        )
    )
    words = shown.page.locator("svg.drawing").text_content()
    assert (
        words.count("tl.load") == 1
        and "for start" not in words
        and "eps" not in words
        and "N = 5" in words
    )
    shown.grip("n").wait_for(state="detached")
    assert shown.page.locator("[data-control]").evaluate_all(
        "found => found.map((one) => one.dataset.control)"
    ) == ["step", "step"]  # the stepper and its slider
    titles = []
    for step in range(5):
        shown.set(step=step)
        titles.append(shown.title)
    shown.assert_clear([{"step": step} for step in range(5)])
    assert titles == [
        "Each lane loads one number of the row",
        "The lanes add up to 68, so the mean is 13.6",
        "3 lanes past the end add mean\u00b2 to the sum of squares",
        "The lanes add up to 572.1, so the variance is 114.4, and should be 3.44",
        "Row 0 is done, with the wrong variance",
    ]
    shown.set(step=2)
    assert "pass" not in shown.caption and "hold 0 \u2212 mean = -13.6" in shown.caption
    shown.shoot("block_stepper_one_block")
    shown = show(block_stepper("rms_norm", block=8, one_block=True))
    controls = shown.page.locator("[data-control]").evaluate_all(
        "found => found.map((one) => one.dataset.control)"
    )
    assert controls == ["row", "step", "step"]
    shown.set(step=1, row=2)
    assert "The lanes add up to 37.25, so the mean square is 4.656" in shown.title
    words = shown.page.locator("svg.drawing").text_content()
    assert "= 4.656" in words and "= 0.4634" in words and "+ eps" in words
    shown.shoot("block_stepper_one_block_rms")


LOUD = [[2, -1, 3, 0.5, -0.5, 1.5, 300]]


def test_a_square_past_65504_makes_every_result_0_in_fp16_alone(show):
    shown = show(block_stepper("rms_norm", LOUD, block=8, one_block=True, eps=0, dtype="fp16"))
    for loud in (250.0, 255.0, 260.0, 300.0):
        x = np.array([[*LOUD[0][:-1], loud]])
        for dtype, kind in (("fp16", np.float16), ("fp32", np.float32)):
            with np.errstate(over="ignore"):
                mean_square = np.square(x.astype(kind)).astype(np.float32).mean()
            frames = shown.call("explain", shown.state | {"typed": write_rows(x), "dtype": dtype})[
                "frames"
            ]
            assert frames[-1]["y"] == pytest.approx((x[0] / mean_square**0.5).tolist(), rel=1e-3)
    titles = []
    for step in range(3):
        shown.set(step=step)
        titles.append(shown.title)
    assert titles == [
        "The square of 300 is infinite in fp16",
        "The lanes add up to Inf, so the mean square is Inf",
        "Row 0 is done: all 7 results are 0",
    ]
    assert "A number divided by an infinite rms is 0." in shown.caption
    shown.assert_clear(
        [{"step": step, "dtype": dtype} for step in range(3) for dtype in ("fp16", "fp32")]
    )
    shown.set(step=0, dtype="fp16")
    shown.shoot("block_stepper_loud")
    shown.page.get_by_label("fp32", exact=True).check(force=True)
    assert shown.title == "Each lane loads one number and squares it"


@pytest.mark.parametrize("width", [1280, 900])
def test_a_row_of_eight_is_one_row_of_lanes_and_its_caption_is_seen(show, width):
    shown = show(block_stepper("layer_norm", EXAMPLE[:1], 8, one_block=True, eps=0))
    shown.set_width(width)
    for step in range(5):
        shown.set(step=step)
        box = shown.page.locator(".caption").bounding_box()
        assert shown.drawn.count("lanes 0 to") == 1 and "lanes 4 to 7" not in shown.drawn
        assert box["y"] + box["height"] < 757 - 150  # a window less the bars of JupyterLab
    assert [
        words.strip() for words in shown.page.locator("[data-key^=step-]").all_text_contents()
    ] == [
        "load", "sum", "subtract", "sum", "divide",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"dtype": "fp8", "one_block": True, "block": 8, "eps": 0},
        {"dtype": "fp16", "block": 8, "eps": 0},
        {"block": 4, "one_block": True},
        {"block": 5},
        {"x": np.zeros((7, 2))},
        {"x": np.zeros((1, 17))},
        {"kind": "group_norm"},
    ],
)
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError):
        block_stepper(**wrong)
