"""The merge tree: every node against NumPy, its words, and the controls."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import merge_tree
from course_lib.lessons.merge_tree.widget import draw

module = importlib.import_module("course_lib.lessons.merge_tree.model")
DATA, describe, steps, title = module.DATA, module.describe, module.steps, module.title


@settings(max_examples=60, deadline=None)
@given(
    x=st.lists(st.integers(-50, 50).map(lambda v: v / 2), min_size=1, max_size=8),
    block=st.sampled_from([1, 2, 4, 8]),
)
def test_every_node_is_the_statistics_of_its_elements(x, block):
    frames = steps(x, block)
    seen = set()
    for frame in frames:
        for level, nodes in enumerate(frame.levels):
            for place, node in enumerate(nodes):
                if node is None:
                    continue
                seen.add((level, place))
                part = np.array(x[node.first : node.last + 1])
                if level == 0:
                    part = part[: node.count]
                assert node.count == len(part)
                assert node.mean == pytest.approx(part.mean() if len(part) else 0, abs=1e-4)
                squares = ((part - part.mean()) ** 2).sum() if len(part) else 0
                assert abs(node.M2 - squares) < 1e-2
    last = frames[-1]
    assert last.root.count == len(x) and len(seen) == sum(map(len, last.levels))
    assert len(frames) == min(block, len(x)) + sum(map(len, last.levels[1:]))


def test_a_far_mean_survives_merging_and_not_one_pass():
    last = steps(DATA["mean 10000"], 2)[-1]
    assert abs(last.root.M2 / 8 / last.true - 1) < 1e-6 and last.direct == 0
    assert "E[x^2] - E[x]^2 in fp32: 0." in describe(last)


def test_the_distance_between_the_means_is_what_two_levels_consist_of():
    last = steps(DATA["two levels"], 1)[-1]
    assert [node.M2 for node in last.levels[-2]] == [0, 0] and last.root.M2 == 32
    assert "M2 = 0 + 0 + d^2 * 4 * 4 / 8 = 32." in describe(last)


def test_titles_say_what_happens():
    frames = steps(DATA["worked example"][:5], 1)
    assert title(frames[0]) == "Each block takes in its first number"
    assert title(frames[1]) == "Merge: x[0] with x[1]"
    assert "empty side changes nothing" in [title(frame) for frame in frames][3] + title(frames[4])
    assert title(frames[-1]).startswith("The root knows all 5: variance ")
    assert title(steps(DATA["worked example"], 4)[2]) == "Welford: each block takes in its number 3"
    assert title(steps([7.0], 1)[0]).startswith("The root knows all 1: variance 0 / 1 = 0")


@pytest.mark.parametrize("block", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [1, 5, 8])
def test_every_frame_draws(block, n):
    for data in DATA.values():
        frames = steps(data[:n], block, "fp16")
        shown = draw(frames, len(frames) - 1)
        assert (
            shown.png.startswith(b"\x89PNG") and shown.alt and f"Frame {len(frames)} of {len(frames)}." in shown.caption
        )


def test_the_controls_move_it():
    widget = merge_tree()
    first = widget.caption
    widget.step.click()
    assert widget.caption != first and "Frame 2 of 8" in widget.caption
    widget.controls["block"].value = 4
    assert "blocks of 4" in widget.caption and "Frame 1 of 5" in widget.caption
    widget.controls["n"].value = 3
    assert "Frame 1 of 3" in widget.caption
    widget.reset()
    assert widget.caption == first and widget.error is None
    assert "The root knows all 8" in widget.still().alt


@pytest.mark.parametrize("arguments", [([], 1), ([1.0] * 9, 1), ([[1.0]], 1), ([1.0], 3), ([1.0], 1, "fp8")])
def test_what_it_cannot_show_is_refused(arguments):
    with pytest.raises(CourseError, match="merge tree"):
        steps(*arguments)
    with pytest.raises(CourseError, match="merge tree"):
        merge_tree("no such row")
