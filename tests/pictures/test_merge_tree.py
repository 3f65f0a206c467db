"""The merge tree: the browser's arithmetic against NumPy, bit by bit, and what a hand and the keys
make of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import merge_tree
from course_lib.lessons.lesson04.merge_tree.model import BLOCKS, COLUMNS, DATA
from course_lib.norms import statistics

START = {
    "row": "worked example",
    "moved": None,
    "n": 8,
    "parts": 1,
    "split": 4,
    "dtype": "fp32",
    "frame": 0,
}
LAST = 99


def _node(part: statistics.Partial, place: int) -> tuple[float, ...]:
    return tuple(float(value[place]) for value in part)


def _shown(nodes: list[dict]) -> list[tuple[float, ...]]:
    return [(node["count"], node["mean"], node["M2"]) for node in nodes]


def test_every_node_is_what_numpy_rounds_in_that_dtype(show):
    shown = show(merge_tree())
    random = np.random.default_rng(3)
    for dtype, n, block, row in itertools.product(
        ("fp32", "fp16"), (1, 3, 5, 8), BLOCKS, (*DATA, "random")
    ):
        x = random.normal(3, 40, 8).round(3) if row == "random" else np.array(DATA[row])
        kind = {"fp32": np.float32, "fp16": np.float16}[dtype]
        seen = shown.call(
            "explain",
            START
            | {
                "row": "x",
                "moved": {"row": "x", "x": x.tolist()},
                "n": n,
                "parts": block,
                "dtype": dtype,
            },
        )
        with np.errstate(over="ignore", invalid="ignore"):
            parts = statistics.partials(x[:n], kind, block)
        levels = math.ceil(math.log2(math.ceil(n / block)))
        spare = 2**levels - len(parts.count)
        parts = statistics.Partial(
            *(np.concatenate([value, np.zeros(spare, value.dtype)]) for value in parts)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            direct = float(statistics.one_pass(x[:n], kind, "pairwise").var)
            for level in range(levels + 1):
                want = [_node(parts, place) for place in range(len(parts.count))]
                np.testing.assert_array_equal(_shown(seen["levels"][level]), want)
                parts = (
                    statistics.merge(
                        *(
                            statistics.Partial(*(value[side::2] for value in parts))
                            for side in (0, 1)
                        )
                    )
                    if level < levels
                    else parts
                )
        np.testing.assert_array_equal(seen["direct"], direct)
        assert len(seen["frames"]) == min(block, n) + 2**levels - 1
        assert seen["true"] == pytest.approx(
            x[:n].astype(kind).astype(np.float64).var(), rel=1e-9, abs=1e-12
        )


def test_wherever_a_hand_splits_the_parts_make_the_same_whole(show):
    shown = show(merge_tree())
    slot = shown.grip("x1").bounding_box()["x"] - shown.grip("x0").bounding_box()["x"]
    shown.drag("split", dx=-2 * slot)
    assert (shown.state["parts"], shown.state["split"]) == ("split", 2)
    x = np.array(DATA["worked example"])
    for split in range(COLUMNS + 1):
        shown.set(split=split)
        seen = shown.call("explain", shown.state)
        inside = [
            float(((side - side.mean()) ** 2).sum()) if len(side) else 0.0
            for side in (x[:split], x[split:])
        ]
        assert [node["M2"] for node in seen["levels"][0]] == pytest.approx(inside, abs=1e-5)
        root = seen["levels"][1][0]
        assert root["M2"] == pytest.approx(((x - x.mean()) ** 2).sum(), rel=1e-6)
        assert root["between"] == pytest.approx(root["M2"] - sum(inside), abs=1e-5)
    assert "The right side has no number" in shown.caption
    shown.grip("split").press("ArrowLeft")
    assert shown.state["split"] == 7 and "n = 7 + 1 = 8" in shown.caption


def test_a_number_is_moved_by_hand_and_by_keys(show):
    shown = show(merge_tree(block=8))
    shown.set(frame=LAST)
    before = shown.title
    shown.drag("x2", dx=0, dy=-30)
    assert shown.state["moved"]["x"][2] > 3 and shown.title != before
    moved = shown.state["moved"]["x"][2]
    shown.grip("x2").press("ArrowDown")
    assert shown.state["moved"]["x"][2] == moved - 0.5
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.state["moved"] is None


def test_a_far_mean_is_never_rounded_away(show):
    shown = show(merge_tree("mean 10000"))
    shown.set(frame=LAST)
    assert "mean 10000.5" in shown.drawn and "mean 9999.5" in shown.drawn
    assert (
        "E[x²] - E[x]² in fp32: 0." in shown.caption
        and "Variance 2.402, true variance 2.402" in shown.caption
    )


def test_the_words_say_what_happens(show):
    shown = show(merge_tree("two halves"))
    assert shown.title == "Each block takes in its first number" and "not yet merged" in shown.grip(
        "node-3-0"
    ).get_attribute("aria-label")
    shown.page.get_by_role("button", name="Step", exact=True).click()
    assert shown.title == "Merge x[0] with x[1]: their means differ by 2"
    shown.grip("node-3-0").press("Enter")
    assert shown.title == "8 numbers: M2 = 4 + 4 + 200 = 208, variance 26"
    assert "M2 = 4 + 4 + 200 = 208: inside the left side" in shown.caption
    shown.set(n=5, frame=3)
    assert shown.title == "Merging with an empty side changes nothing"
    shown.set(n=8, parts=4, frame=2)
    assert shown.title == "Welford: each block takes in its number 3"
    shown.set(n=1, parts=1)
    assert shown.title == "1 number: variance = M2 / n = 0 / 1 = 0"
    shown = show(merge_tree("two halves", block="split"))
    assert shown.title == "8 numbers: M2 = 4 + 4 + 200 = 208, variance 26"


def test_it_looks_right_everywhere(show):
    shown = show(merge_tree())
    shown.set(parts="split", split=3, frame=LAST)
    shown.shoot("merge_tree-split")
    shown.set(row="mean 10000", parts=1, frame=LAST)
    shown.shoot("merge_tree")
    shown.assert_clear(
        [
            {"row": row, "n": n, "parts": parts, "dtype": dtype, "frame": frame, "split": frame % 4}
            for row, n, parts, dtype, frame in itertools.product(
                DATA, (1, 5, 8), (1, 2, 8, "split"), ("fp32", "fp16"), (0, 2, LAST)
            )
        ]
    )


@pytest.mark.parametrize(
    "wrong", [{"data": "no such row"}, {"block": 3}, {"N": 0}, {"N": 9}, {"dtype": "fp8"}]
)
def test_what_it_cannot_show_is_refused(wrong):
    with pytest.raises(CourseError, match="merge tree has the rows"):
        merge_tree(**wrong)
