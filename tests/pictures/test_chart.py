"""The charts: what they say of any data, in the browser, and every chart of the lessons without
words on one another."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from course_lib.bench import measurement
from course_lib.lessons import ladder, own_kernels
from course_lib.lessons.figures import bench
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.kit.palette import list_colours
from course_lib.lessons.lesson01 import figures as lesson01
from course_lib.lessons.lesson02 import figures as lesson02
from course_lib.lessons.lesson03 import figures as lesson03
from course_lib.lessons.lesson05 import figures as lesson05
from course_lib.lessons.lesson06 import figures as lesson06
from course_lib.lessons.lesson07 import figures as lesson07
from course_lib.lessons.lesson08 import figures as lesson08
from course_lib.lessons.lesson09 import figures as lesson09
from course_lib.lessons.lesson10 import figures as lesson10
from course_lib.lessons.lesson11 import figures as lesson11
from course_lib.lessons.lesson12 import figures as lesson12
from course_lib.lessons.lesson13 import figures as lesson13
from course_lib.lessons.lesson13 import sums
from course_lib.lessons.lesson14 import figures as lesson14
from course_lib.lessons.lesson15 import figures as lesson15
from course_lib.lessons.lesson16 import figures as lesson16
from course_lib.lessons.lesson16 import split_rows
from course_lib.lessons.lesson17 import figures as lesson17
from course_lib.lessons.lesson17 import museum
from course_lib.lessons.lesson18 import figures as lesson18
from course_lib.lessons.norm_times import stored_norm_times
from course_lib.lessons.pictures.chart.model import (
    Axis,
    Bar,
    Bars,
    Cells,
    Level,
    Plot,
    Series,
    View,
    chart,
)

X = [1.0, 10.0, 100.0, 1000.0]
FAR_ROW = (1000 + np.random.default_rng(0).standard_normal(64)).astype(np.float32)
PARTS = [
    own_kernels.Part(exercise, role, exercise == "08a")
    for exercise, role in (
        ("08a", "forward"),
        ("11a", "dx"),
        ("13b", "dw and db"),
        ("14a", "wiring"),
    )
]
TESTS = ("gradcheck", "y.sum()", "y * g", "y + x", "y.t()", "fp16 x", "twice")
INPUTS = ("A: 64, mean 10", "B: 60, mean 10", "C: 60, mean 3000", "D: transposed")
ERRORS = (1e-7, 8.0, 800000.0, math.nan)
MET = {
    f"catch_{bug}": [museum.Met(right, bug == "padding") for right in (False, False, True)]
    for bug in ("padding", "one_pass", "leading_dimensions")
}
DOTS = [
    Series(name, [1024, 4096], [y, y + 0.1], colour, line=False)
    for name, y, colour in (("yours, 08a", 1.1, "welford"), ("PyTorch, this GPU", 1.3, "torch"))
]
NOTE = "Dots: measured now on NVIDIA L4."
LESSONS: dict[str, Callable[[], MovingPicture]] = {
    "01-traffic": lesson01.show_traffic,
    "01-layers": lesson01.through_layers,
    "01-means": lambda: lesson01.shared_means(2, 3, 4),
    "02-rows": lambda: lesson02.small_rows(1e-5),
    "03-terms": lambda: lesson03.draw_terms(
        FAR_ROW, (FAR_ROW * FAR_ROW).mean(), FAR_ROW.mean() ** 2
    ),
    "03-rows": lesson03.show_real_rows,
    "03-bounds": lesson03.show_against_bounds,
    "05-cost": lesson05.show_stored_cost,
    "06-roofline": lambda: lesson06.norms_on_the_roofline(stored_norm_times()),
    "06-calls": lambda: lesson06.call_or_bytes(2.81e12),
    "06-ladder": lambda: ladder("13"),
    "07-variance": lesson07.show_unmasked_variance,
    "08-cost": lesson08.show_forward_cost,
    "09-fused": lambda: lesson09.show_fused_cost(stored_norm_times()),
    "10-paths": lambda: lesson10.show_three_paths(np.array([2, -1, 3, 0.5])),
    "10-through": lambda: lesson10.show_let_through(1e-5),
    "11-marks": lesson11.show_marks,
    "11-saved": lesson11.show_saved_statistics,
    "12-buffers": lesson12.show_shared_buffers,
    "13-batches": lambda: lesson13.show_row_in_batches(1, 64, 256),
    "13-chunks": lesson13.show_chunks,
    "13-designs": lambda: lesson13.show_designs(sums.measure_designs()),
    "14-parts": lambda: lesson14.show_parts(PARTS),
    "14-seen": lambda: lesson14.show_seen(
        {
            bug: dict.fromkeys(TESTS, bug == "dy ignored")
            for bug in ("dx written over dy", "dy ignored")
        }
    ),
    "14-steps": lambda: lesson14.show_steps(measurement.stored("profile")),
    "14-speed": lambda: lesson14.show_speed(measurement.stored("training")),
    "14-profile": lambda: lesson14.show_profile(measurement.stored("profile")),
    "visit-05": lambda: lesson05.sweep_cost(measurement.stored("statistics"), DOTS, NOTE),
    "visit-08": lambda: lesson08.show_forward_cost(measurement.stored("forward"), DOTS, NOTE),
    "visit-13": lambda: lesson13.show_designs(sums.read_stored_designs(), DOTS, NOTE),
    "15-published": lesson15.show_published,
    "15-times": lesson15.show_published_times,
    "15-counters": lesson15.show_counters,
    "16-rows": lambda: lesson16.show_long_rows(
        split_rows.measure_long_rows("torch", "blocked", "few_rows", "split")
    ),
    "17-errors": lambda: lesson17.show_errors(
        {
            bug: dict(zip(INPUTS, ERRORS, strict=True))
            for bug in ("kernel 1", "kernel 2", "kernel 3")
        }
    ),
    "17-met": lambda: lesson17.show_met(MET),
    "18-memory": lambda: lesson18.show_loss_memory(8192, 128256),
    "bench-forward": lambda: bench.over_floor(measurement.stored("forward")),
    "bench-host": lambda: bench.host(measurement.stored("host")),
    "bench-training": lambda: bench.training(measurement.stored("training")),
}


def make_plot(*series: Series, **more) -> MovingPicture:
    plot = Plot(Axis("columns N (fp16)", log=True), Axis("time", unit=" ms"), series, **more)
    return chart(View("A title", [plot], "A source."), alt="Lines.")


def test_pointing_and_keys_read_a_value(show):
    shown = show(make_plot(Series("one", X, [1, 2, 3, 4]), Series("two", X, [4, 3, 2, 1])))
    assert (
        shown.title == "A title" and shown.caption == "A source." and shown.alt == "A title. Lines."
    )
    box = shown.grip("read-0").bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + 5)
    assert "one: 4 ms at columns N = 1000" in shown.drawn
    shown.page.mouse.move(2, 2)
    assert shown.state["at"] is None and "columns N = 1000" not in shown.drawn
    grip = shown.grip("read-0")
    for key, said in (
        ("ArrowRight", "one: 1 ms at columns N = 1"),
        ("ArrowRight", "one: 2 ms at columns N = 10"),
        ("ArrowUp", "two: 3 ms"),
        ("ArrowLeft", "two: 4 ms at columns N = 1"),
        ("ArrowLeft", "two: 4 ms at columns N = 1"),
    ):
        grip.press(key)
        assert said in shown.drawn and said in grip.get_attribute("aria-valuetext")


def test_every_name_is_written_and_none_on_another(show):
    near = [
        Series(f"a rather long name of line {i}", X, [1 + i / 100] * 4, "torch") for i in range(8)
    ]
    shown = show(
        make_plot(
            *near,
            levels=[
                Level(
                    1.0,
                    "a level with words that are too long for the plot of a phone, which go below",
                )
            ],
        )
    )
    shown.assert_clear(
        [{}], lambda: [pytest.fail(one.name) for one in near if one.name not in shown.drawn]
    )
    assert "too long for the plot" in shown.drawn


def test_what_is_no_number_leaves_a_gap_and_what_is_infinite_stays_inside(show):
    shown = show(make_plot(Series("one", X, [1, math.nan, 3, math.inf])))
    heights = shown.page.locator("svg.drawing circle").evaluate_all(
        "dots => dots.map(dot => Number(dot.getAttribute('cy')))"
    )
    assert len(heights) == 3 and all(0 < height < 400 for height in heights)
    assert (
        shown.page.locator("svg.drawing path[stroke='var(--ink)']").get_attribute("d").count("M")
        == 2
    )


def test_a_choice_shows_another_view(show):
    views = [
        View(name, [Plot(Axis("x"), Axis("y"), [Series("s", X, X)])], name=name)
        for name in ("first", "second")
    ]
    shown = show(chart(*views, alt="Two.", control="which", start=1))
    assert shown.title == "second"
    shown.page.get_by_label("first").check(force=True)
    assert shown.title == "first"
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.title == "second"


def test_a_value_that_is_read_goes_with_its_view(show):
    def make_view(name: str, *series: Series) -> View:
        return View(name, [Plot(Axis("x"), Axis("y"), series)], name=name)

    longer = make_view("longer", Series("s", X, X), Series("t", X, [2 * x for x in X]))
    shown = show(
        chart(
            longer,
            make_view("shorter", Series("s", X[:2], X[:2])),
            make_view("gap", *[Series("s", X, [math.nan, *X[1:]])] * 2),
            alt="Three.",
            control="which",
        )
    )
    grip = shown.grip("read-0")
    grip.press("ArrowRight")
    grip.press("ArrowUp")
    assert "t: 2 at x = 1" in shown.drawn
    for view in (1, 2):
        shown.set(view=view)
        assert "at x = 1" not in shown.drawn
    grip.press("ArrowRight")
    assert "s: 10 at x = 10" in shown.drawn


def test_panels_wrap_on_a_narrow_page(show):
    panel = Plot(Axis("x"), Axis("y"), [Series("s", X, X)], title="panel")
    shown = show(chart(View("Three", [panel] * 3), alt="Three plots."))

    def count_columns() -> int:
        return len(
            set(
                shown.page.locator("svg.drawing text", has_text="panel").evaluate_all(
                    "all => all.map(one => one.getAttribute('x'))"
                )
            )
        )

    assert count_columns() == 3
    shown.page.set_viewport_size({"width": 330, "height": 800})
    shown.page.wait_for_function(
        "document.querySelector('[data-picture]').stage.svg.getAttribute('width') < 400"
    )
    assert count_columns() == 1 and shown.overflow() <= 0


def test_bars_and_cells_say_their_values(show):
    bars = Bars(
        [
            (
                "eager",
                [
                    Bar("ours", [(3, "ours")]),
                    Bar(
                        "a provider with a name so long that it stands above",
                        [(4, "torch"), (2, "x")],
                    ),
                ],
            )
        ],
        "ms per step",
        level=(1, "the floor"),
        parts=[("launch", "torch"), ("work", "x")],
    )
    cells = Cells(["row"], ["first", "second"], [["a", "0.5"]], [["fault", 0.5]], "rows", "columns")
    shown = show(chart(View("Both", [bars, cells]), alt="Bars and cells."))
    shown.assert_clear([{}])
    assert all(
        word in shown.drawn
        for word in (
            "eager",
            "ours",
            "3",
            "6",
            "the floor",
            "launch",
            "ms per step",
            "second",
            "0.5",
            "columns",
        )
    )


@pytest.mark.parametrize(
    ("values", "level"),
    [((0.2, 4.25), 64.0), ((1.02, 7.5), 1.0), ((0.5, 1.5), 1.0), ((3.0, 30.0), None)],
)
def test_a_bar_on_a_logarithmic_scale_is_longer_for_a_larger_number(show, values, level):
    bars = Bars(
        [("", [Bar(f"bar {value}", [(value, "ours")]) for value in values])],
        "times",
        log=True,
        level=level and (level, "here"),
    )
    shown = show(chart(View("Logarithmic", [bars]), alt="Two bars."))
    bars_drawn = shown.page.locator("rect[height='18']")
    short, long = bars_drawn.evaluate_all(
        "bars => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    assert 1 < short < long


def test_marks_of_a_test_are_right_and_wrong_ones():
    assert lesson17.show_met(MET).data["views"][0]["title"] == "0 of 3 bugs caught"
    wrong, right = lesson17.show_met(MET).data["views"][0]["panels"]
    assert wrong["words"] == [
        ["\u2713", "\u2713"],
        ["\u2717", "\u2717"],
        ["\u2717", "\u2717"],
    ] and right["words"] == [["\u2717"], ["\u2713"], ["\u2713"]]


def find_colours(part) -> set[str]:
    """Return the names of the colours in a chart's data. A part of a bar, and a name of parts, has
    its colour as its last item."""
    if isinstance(part, dict):
        own = (
            {part["colour"]}
            if "colour" in part
            else {colour for _, colour in part.get("parts", ())}
        )
        return own.union(*map(find_colours, part.values()))
    return set().union(*map(find_colours, part)) if isinstance(part, (list, tuple)) else set()


@pytest.mark.parametrize("name", LESSONS)
def test_every_colour_of_a_chart_is_one_of_the_course(name):
    unknown = {
        colour
        for colour in find_colours(LESSONS[name]().data)
        if colour.replace("_", "-") not in list_colours("light")
    }
    assert not unknown, f"course_lib/lessons/style.py has no colour {unknown}"


@pytest.mark.parametrize("name", LESSONS)
def test_a_chart_of_a_lesson_has_no_words_on_one_another(name, show):
    picture = LESSONS[name]()
    shown = show(picture)
    shown.assert_clear([{"view": view} for view in range(len(picture.data["views"]))])
    shown.shoot(f"chart-{name}")


def test_what_a_chart_says_in_words_has_what_it_draws():
    said = lesson15.show_counters().alt
    assert said.count("registers per thread") == 3, "each kernel's counters are said"
    nobody = {"twice": dict.fromkeys(TESTS, False), "eps": dict.fromkeys(TESTS, True)}
    assert "twice: seen by none." in lesson14.show_seen(nobody).alt
