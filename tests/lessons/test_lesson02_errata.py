"""The two errata of lesson 02: a blog post's table with two wrong rows, and its 1 / (rms + eps). Theirs wrong, ours right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from course_lib.base import paths
from course_lib.lessons.figures.lesson02 import PUBLISHED
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE, steps
from course_lib.norms import reference

X = np.array(EXAMPLE)
TRUE = ((14.25, 7.5), (32.25, 6.5), (21.75, 15.5))  # the sum of squares of each block of four
EPS = 1e-5
LESSON = (paths.NOTEBOOK_SOURCES / "02_rms_norm.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", range(3))
def test_the_block_sums_of_squares_are_exact(row):
    exact = [sum(Fraction(v) ** 2 for v in EXAMPLE[row][at : at + 4]) for at in (0, 4)]
    assert [float(e) for e in exact] == list(TRUE[row])
    last = [frame for frame in steps(X, 4, "rms_norm") if frame.row == row and frame.phase == "squares"][-1]
    assert last.running == sum(TRUE[row])


def test_rows_1_and_2_of_the_published_table_are_wrong_and_row_0_is_right():
    right = torch.nn.functional.rms_norm(torch.tensor(X), (8,), eps=EPS).numpy()
    theirs = X / np.sqrt(np.array(PUBLISHED) / 8 + EPS)[:, None]
    ours = X / np.sqrt(np.array([sum(blocks) for blocks in TRUE]) / 8 + EPS)[:, None]
    assert np.allclose(ours, right, rtol=1e-12, atol=0)
    assert np.allclose(theirs[0], right[0], rtol=1e-12, atol=0)
    for row in (1, 2):
        assert np.abs(theirs[row] - right[row]).max() > 0.1


def test_the_mean_square_of_y_finds_the_wrong_rows_without_a_reference():
    theirs = X / np.sqrt(np.array(PUBLISHED) / 8)[:, None]
    assert (theirs**2).mean(axis=1).round(3).tolist() == [1.0, 0.876, 0.745]


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


def test_the_lesson_shows_the_published_numbers_and_both_places_of_eps():
    assert "`1 / (rms + eps)`" in LESSON and "`1 / sqrt(mean square + eps)`" in LESSON
    for row, value in zip(EXAMPLE, PUBLISHED, strict=True):
        shown = " ".join(f"{v:g}".replace("0.", ".") for v in row)
        assert f"`{shown}` | {value:.2f} |" in LESSON
