"""The bytes of a chain against one fused kernel: the model by hand, the browser against the model,
and the race."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import bytes_moved
from course_lib.lessons.lesson09.bytes_moved.model import CASES, COLUMNS, ITEMSIZE, ROWS, model

START = {
    "kind": "add",
    "m": 4096,
    "n": 4096,
    "dtype": "fp16",
    "upcast": True,
    "bandwidth": 3000,
    "at": 0,
}
END = 40


@given(
    m=st.integers(1, 5000), n=st.integers(1, 5000), dtype=st.sampled_from(["fp16", "bf16", "fp32"])
)
def test_bytes_of_add_and_norm(m, n, dtype):
    size = 4 if dtype == "fp32" else 2
    state = model("add", m, n, dtype)
    assert (state.unfused_bytes, state.fused_bytes) == (5 * m * n * size, 4 * m * n * size)
    assert state.ratio == pytest.approx(0.8)


@given(m=st.integers(1, 5000), n=st.integers(1, 5000))
def test_bytes_of_the_eager_chain(m, n):
    # fp32: pow 2, mean 1, mul 2, mul 2 times M N; and per row mean 1, add 2, rsqrt 2, mul 1 times M
    assert model("eager", m, n, "fp32").unfused_bytes == 4 * (7 * m * n + 6 * m)
    assert model("eager", m, n, "fp16", upcast=False).unfused_bytes == 2 * (7 * m * n + 6 * m)
    # cast up 2 + 4, pow 8, mean 4, mul 8, cast down 4 + 2, mul 4 bytes an element
    assert model("eager", m, n, "bf16", upcast=True).unfused_bytes == 36 * m * n + 4 * 6 * m
    assert model("eager", m, n, "bf16").fused_bytes == 4 * m * n
    assert (
        len(model("eager", m, n, "bf16").unfused) == 8
        and len(model("eager", m, n, "fp32").unfused) == 6
    )


def test_the_browser_moves_the_same_bytes_in_the_time_that_they_take(show):
    shown = show(bytes_moved())
    for case, m, n, dtype, upcast in itertools.product(
        CASES, (1, 4096), (1, 32768), ITEMSIZE, (True, False)
    ):
        seen = shown.call(
            "explain",
            START
            | {"kind": case, "m": m, "n": n, "dtype": dtype, "upcast": upcast, "bandwidth": 2500},
        )
        want = model(case, m, n, dtype, upcast)
        for way, launches, moved in (
            ("separate", want.unfused, want.unfused_bytes),
            ("fused", want.fused, want.fused_bytes),
        ):
            assert seen[way]["bytes"] == moved and seen[way]["us"] == pytest.approx(
                moved / 2.5e12 * 1e6
            )
            assert [launch["bytes"] for launch in seen[way]["launches"]] == [
                launch.bytes(m, n) for launch in launches
            ]
            parts = [part for launch in seen[way]["launches"] for part in launch["parts"]]
            assert parts[0]["start"] == 0 and all(
                a["end"] == b["start"] for a, b in itertools.pairwise(parts)
            )


def test_the_race_is_run_by_hand_and_by_keys(show):
    shown = show(bytes_moved())
    assert shown.title == "2 launches and 1 launch compute the same result: which is done first?"
    shown.drag("at", dx=200)
    assert shown.title.startswith("After ") and 0 < shown.state["at"] < END
    at = shown.state["at"]
    shown.grip("at").press("ArrowRight")
    assert shown.state["at"] == at + 1
    shown.set(at=36)
    assert (
        shown.title == "The fused kernel is done; the chain is in launch 2 of 2, which writes y"
        and "✓ done" in shown.drawn
    )
    shown.set(at=END)
    assert (
        shown.title
        == "Fusing add and rms_norm moves 0.80 times the bytes: 4 M N elements instead of 5 M N"
    )
    shown.set(kind="eager")
    assert (
        shown.title
        == "Op by op, rms_norm moves 9.0 times the bytes of the fused kernel, in 8 launches"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": 1024}, "M = 1024"),
        ({"dtype": "fp32"}, "2 launches move 336 MB"),
        ({"kind": "eager"}, "8 launches move 604 MB"),
        ({"bandwidth": 1000}, "At 1000 GB/s, 2 launches move 168 MB in 168 µs"),
        (
            {"n": 256, "m": 16},
            (
                "launches set the time, not the bytes: 20 µs for the chain and 10 µs for the fused"
                " kernel"
            ),
        ),
    ],
)
def test_a_setting_changes_the_bars_and_the_words(show, change, words):
    shown = show(bytes_moved())
    ends = "() => document.querySelector('[data-picture]').stage.svg.innerHTML"
    before = shown.page.evaluate(ends)
    shown.set(**change)
    assert words in shown.caption and shown.page.evaluate(ends) != before


@pytest.mark.parametrize(("case", "others"), [("add", "op by op"), ("eager", "add, then rms_norm")])
def test_a_picture_of_one_case_does_not_speak_of_the_other(show, case, others):
    """Lesson 09 shows the addition before it has said what "op by op" is."""
    shown = show(bytes_moved(case=case))
    assert shown.state["kind"] == case and shown.page.locator('[data-control="kind"]').count() == 0
    assert others not in shown.page.locator("body").inner_text()
    assert shown.page.locator('[data-control="upcast"]').count() == (case == "eager")


def test_what_has_no_meaning_is_off(show):
    shown = show(bytes_moved())
    upcast = shown.page.locator('[data-control="upcast"] input')
    assert upcast.is_disabled()
    shown.set(kind="eager")
    assert upcast.is_enabled()
    shown.set(dtype="fp32")
    assert upcast.is_disabled()


def test_it_looks_right_everywhere(show):
    shown = show(bytes_moved())
    shown.set(at=27)
    shown.shoot("bytes_moved")
    shown.set(kind="eager", at=12)
    shown.shoot("bytes_moved-eager")
    shown.assert_clear(
        [
            {"kind": kind, "m": m, "n": n, "dtype": dtype, "bandwidth": bandwidth, "at": END}
            for kind, m, n, dtype, bandwidth in itertools.product(
                CASES,
                (1, ROWS[3], ROWS[-1]),
                (1, COLUMNS[4], COLUMNS[-1]),
                ("fp16", "fp32"),
                (100, 8000),
            )
        ]
    )


@pytest.mark.parametrize("wrong", [{"M": 0}, {"N": 0}, {"dtype": "fp8"}, {"case": "none"}])
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError, match="bytes_moved knows"):
        bytes_moved(**wrong)
