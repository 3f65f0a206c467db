"""The figure style: readable text, and meanings that survive colour blindness and grey print."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest

from course_lib.base import paths
from course_lib.lessons import style

# Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color
# Vision Deficiency", severity 1.0, applied to linear RGB
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def _linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    """CIELAB of linear sRGB, white point D65."""
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    t = to_xyz @ np.clip(linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _distance(one: str, other: str, vision: str) -> float:
    return float(
        np.linalg.norm(_lab(VISION[vision] @ _linear(one)) - _lab(VISION[vision] @ _linear(other)))
    )


def test_the_simulation_itself_sees_what_a_deuteranope_does_not():
    # matplotlib's default green and red: far apart for most people, close for a deuteranope
    assert _distance("#2CA02C", "#D62728", "normal") > 100
    assert _distance("#2CA02C", "#D62728", "deuteranopia") < 40


@pytest.mark.parametrize("group", style.GROUPS)
@pytest.mark.parametrize("vision", VISION)
def test_colours_of_a_group_stay_apart(group, vision):
    close = [
        (a, b)
        for a, b in combinations(style.GROUPS[group], 2)
        if _distance(style.COLOURS[a], style.COLOURS[b], vision) < 10
    ]
    assert not close


def test_text_reads_on_the_panel_and_on_every_fill():
    for text in (style.INK, style.QUIET):
        assert style.contrast(text, style.PANEL) >= 4.5
    for key, colour in style.COLOURS.items():
        assert style.contrast(style.text_on(colour), colour) >= 4.5, key


def test_contrast_is_the_wcag_ratio():
    assert style.contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    # the well-known near miss
    assert style.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert style.contrast("#0072B2", "#0072B2") == 1.0


def test_every_meaning_has_one_colour():
    names = [key for group in style.GROUPS.values() for key in group]
    assert len(names) == len(set(names)) == len(style.COLOURS)


def test_use_changes_matplotlib_that_is_there_already():
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        style.use()
        assert matplotlib.rcParams["figure.facecolor"] == style.PANEL
        assert (
            matplotlib.rcParams["font.size"] >= 10 and matplotlib.rcParams["xtick.labelsize"] >= 10
        )


def test_the_style_acts_when_matplotlib_is_imported_later():
    code = (
        "import course_lib.lessons, sys; assert 'matplotlib' not in sys.modules; import matplotlib;"
        " print(matplotlib.rcParams['figure.facecolor'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=paths.ROOT
    )
    assert said.stdout.split() == [style.PANEL]
