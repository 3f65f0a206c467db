"""The numbers of lesson 02's worked rows, and the erratum of a blog post: its 1 / (rms + eps)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from course_lib.base import paths
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE, steps
from course_lib.norms import reference

X = np.array(EXAMPLE)
TRUE = ((14.25, 7.5), (32.25, 6.5), (21.75, 15.5))  # the sum of squares of each block of four
EPS = 1e-5
LESSON = (
    (paths.NOTEBOOK_SOURCES / "02_rms_norm.py").read_text(encoding="utf-8").replace("\n# ", " ")
)


@pytest.mark.parametrize("row", range(3))
def test_the_block_sums_of_squares_are_exact(row):
    exact = [sum(Fraction(v) ** 2 for v in EXAMPLE[row][at : at + 4]) for at in (0, 4)]
    assert [float(e) for e in exact] == list(TRUE[row])
    last = [
        frame for frame in steps(X, 4, "rms_norm") if frame.row == row and frame.phase == "squares"
    ][-1]
    assert last.running == sum(TRUE[row])


@pytest.mark.parametrize("rms", [1e-4, 1e-3, 1e-2])
def test_eps_outside_the_root_does_not_match_pytorch_on_quiet_rows_and_inside_does(rms):
    x = rms * np.array([[1.0, -1, 1, -1]])
    right = torch.nn.functional.rms_norm(torch.tensor(x), (4,), eps=EPS).numpy()
    assert np.allclose(reference.rms_norm(x, eps=EPS).y, right, rtol=1e-12, atol=0)
    outside = x / (np.sqrt((x**2).mean()) + EPS)
    assert (np.abs(outside) / np.abs(right)).min() > 1.04


def test_an_ordinary_row_does_not_tell_the_two_apart():
    right = torch.nn.functional.rms_norm(torch.tensor(X), (8,), eps=EPS).numpy()
    outside = X / (np.sqrt((X**2).mean(axis=1, keepdims=True)) + EPS)
    assert np.allclose(outside, right, rtol=1e-5, atol=0)


def test_the_lesson_shows_both_places_of_eps():
    assert "`1 / (rms + eps)`" in LESSON and "`1 / sqrt(mean square + eps)`" in LESSON
