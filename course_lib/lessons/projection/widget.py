"""Lesson 02: the VJP of a norm as a projection, for rows of three numbers, which are points in space."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture, wide
from course_lib.lessons.projection.model import (
    EPS,
    FRAME,
    KINDS,
    ONE,
    STDS,
    ZERO,
    N,
    ProjectionState,
    clean,
    describe,
    format_vector,
    model,
    push,
    row,
    title,
)
from course_lib.lessons.words import format_decimal

_REACH = 2.9  # the drawing's half width, in the units of wdy
_BELOW = np.array([0, 0, -0.32])
# what each vector is drawn with: colour, line style and marker differ, and every one carries its name
LOOKS: dict[str, dict[str, Any]] = {
    "xhat": {"color": style.COLOURS["x"], "linestyle": "-", "marker": "s"},
    "wdy": {"color": "#B85A00", "linestyle": "-", "marker": "D"},
    "along_one": {"color": style.COLOURS["mean"], "linestyle": "--", "marker": "v"},
    "along_xhat": {"color": style.INK, "linestyle": ":", "marker": "."},
    "left": {"color": style.COLOURS["w"], "linestyle": "-", "marker": "o"},
}


def draw(state: ProjectionState, view: float = 285.0) -> Picture:
    """wdy taken apart, seen from ``view`` degrees around the vertical axis, which is the direction 1."""
    figure = Figure(figsize=(style.WIDTH, 4.5), dpi=style.DPI, facecolor=style.PANEL)
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((-0.06, -0.02, 0.72, 0.98), projection="3d")
    _draw_space(axes, state, view)
    _draw_vectors(axes, state)
    figure.text(0.02, 0.955, title(state), fontsize=12, weight="bold", color=style.INK)
    _draw_key(figure, state)
    caption = describe(state)
    alt = (
        f"{title(state)}. A drawing in space: up is the direction 1, in which all three numbers of a row rise together; the disc is the "
        f"plane at right angles to it. wdy is taken apart into its removed parts and what is left. {caption}"
    )
    return Picture(style.png(figure, alt), alt, caption)


def _draw_space(axes: Axes3D, state: ProjectionState, view: float) -> None:
    axes.set_axis_off()
    axes.set(xlim=(-_REACH, _REACH), ylim=(-_REACH, _REACH), zlim=(-_REACH, _REACH))
    axes.set_box_aspect((1, 1, 1), zoom=1.7)  # pyright: ignore[reportArgumentType] - its stub says int; the function divides by it
    axes.set_proj_type("ortho")
    axes.view_init(elev=24, azim=view)
    axes.computed_zorder = False
    around = np.linspace(0, 2 * math.pi, 73)
    disc = 2.4 * np.stack([np.cos(around), np.sin(around)])
    corners = np.column_stack([disc[0], disc[1], np.zeros_like(around)])
    axes.add_collection3d(
        Poly3DCollection([corners], facecolor=style.COLOURS["masked"], alpha=0.22, edgecolor=style.QUIET, zorder=1)
    )
    axes.plot([0, 0], [0, 0], [-2.1, 2.2], color=style.QUIET, linewidth=1.0, linestyle=(0, (9, 2)), marker="", zorder=2)
    _label(axes, np.array([0, 0, 2.45]), "1", style.QUIET)
    for number, axis in enumerate(np.eye(N)):
        end = 1.7 * _rotate(axis)
        axes.plot(
            *zip(np.zeros(N), end, strict=True), color=style.QUIET, linewidth=0.7, linestyle="-", marker="", zorder=2
        )
        _label(axes, 1.12 * end, f"x[{number}]", style.QUIET, bold=False)
    if state.kind == "layer_norm" and state.eps == 0:
        only = np.cross(ONE, state.xhat)
        only = 2.4 * _rotate(only / np.linalg.norm(only))
        axes.plot(
            *zip(-only, only, strict=True),
            color=LOOKS["left"]["color"],
            linewidth=0.9,
            linestyle="-.",
            marker="",
            zorder=2,
        )


def _draw_vectors(axes: Axes3D, state: ProjectionState) -> None:
    corner = state.left + state.along_xhat
    _arrow(axes, "wdy", np.zeros(N), state.wdy)
    if state.c2 is not None:
        _arrow(axes, "along_one", state.wdy, corner)
    _arrow(axes, "along_xhat", corner, state.left)
    _arrow(axes, "xhat", np.zeros(N), state.xhat)
    _arrow(axes, "left", np.zeros(N), state.left, width=3.2)
    again = _rotate(state.again)
    if np.linalg.norm(state.again - state.left) > 0.05:
        axes.plot(
            *again[:, None],
            linestyle="",
            marker="X",
            color=style.PANEL,
            markersize=9,
            markeredgecolor=style.INK,
            zorder=9,
        )
        _label(axes, again + 2 * _BELOW, "once more", style.INK)


def _arrow(axes: Axes3D, name: str, start: np.ndarray, end: np.ndarray, width: float = 2.2) -> None:
    """A line with its look, and a marker and the name at the end that it points to."""
    look = LOOKS[name]
    first, last = _rotate(start), _rotate(end)
    if np.linalg.norm(last - first) >= ZERO:
        line = {"color": look["color"], "linestyle": look["linestyle"], "linewidth": width, "marker": "", "zorder": 5}
        axes.plot(*zip(first, last, strict=True), **line)
    point = {
        "linestyle": "",
        "marker": look["marker"],
        "color": look["color"],
        "markersize": 8,
        "markeredgecolor": style.PANEL,
        "zorder": 7,
    }
    axes.plot(*last[:, None], **point)
    removed = {"along_one": "c2 term", "along_xhat": "c1 term"}
    if name in removed:
        if np.linalg.norm(last - first) > 0.4:
            middle = (first + last) / 2
            outwards = (
                middle * [1, 1, 0] if name == "along_one" else middle
            )  # past the line, away from the other arrows
            _label(axes, middle + 1.7 * _move_past_tip(outwards), removed[name], look["color"])
    else:
        _label(axes, last + (_BELOW if name == "left" else _move_past_tip(last)), name, look["color"])


def _move_past_tip(end: np.ndarray) -> np.ndarray:
    """A little past the tip, so that the name does not lie on the line."""
    length = float(np.linalg.norm(end))
    return 0.32 * end / length if length > 0.1 else _BELOW


def _rotate(vector: np.ndarray) -> np.ndarray:
    """``vector`` in the drawing's axes: the direction 1 upwards."""
    return FRAME @ vector


def _label(axes: Axes3D, at: np.ndarray, text: str, colour: str, bold: bool = True) -> None:
    x, y, z = at
    axes.text(
        x, y, z, text, color=colour, fontsize=style.FONT, weight="bold" if bold else "normal", ha="center", va="center", zorder=10,
        path_effects=[withStroke(linewidth=3.0, foreground=style.PANEL)],
    )  # fmt: skip


def _draw_key(figure: Figure, state: ProjectionState) -> None:
    """What the line styles mean, with the numbers: readable without colour and without the drawing."""
    axes = figure.add_axes((0.63, 0.0, 0.37, 0.93))
    axes.set(xlim=(0, 1), ylim=(1, 0))
    axes.axis("off")
    lines = [
        ("xhat", "xhat", state.xhat),
        ("wdy", "wdy = w * dy", state.wdy),
        ("along_one", "c2 term, taken out", state.along_one if state.c2 is not None else None),
        ("along_xhat", "c1 term, taken out", state.along_xhat),
        ("left", "left = dx / rstd", state.left),
    ]
    for number, (name, words, vector) in enumerate(lines):
        y = 0.06 + 0.138 * number
        look = LOOKS[name]
        axes.plot([0.0, 0.13], [y, y], color=look["color"], linestyle=look["linestyle"], linewidth=2.6, marker="")
        axes.plot([0.13], [y], color=look["color"], marker=look["marker"], markersize=8, markeredgecolor=style.PANEL)
        style.write(axes, 0.19, y, words, bold=True, colour=look["color"])
        style.write(axes, 0.19, y + 0.058, "none: no mean was subtracted" if vector is None else format_vector(vector))
    along = clean(float((state.left * state.xhat).mean()))
    style.write(
        axes,
        0.0,
        0.78,
        f"mean: {format_decimal(state.wdy.mean())} in wdy, {format_decimal(clean(state.left.mean()))} left",
        bold=True,
    )
    style.write(
        axes, 0.0, 0.838, f"along xhat: {format_decimal(state.c1)} in wdy, {format_decimal(along)} left", bold=True
    )
    style.write(axes, 0.0, 0.896, f"eps lets through eps * rstd^2 = {state.kept:.2g}", colour=style.QUIET)
    only = state.kind == "layer_norm" and state.eps == 0
    style.write(axes, 0.0, 0.952, "dash-dotted: the only line left for dx" if only else "", colour=style.QUIET)


def projection(kind: str = "layer_norm", eps: float = 0.0) -> LiveFigure:
    """Turn x and wdy, and watch what the VJP takes out of wdy and what is left for dx.

    Args:
        kind: "layer_norm" or "rms_norm".
        eps: one of 0, 1e-5, 0.01, 0.1, 0.3, 1, 3 and 10.

    Raises: CourseError if an argument is none of those.
    """
    if kind not in KINDS:
        raise CourseError(f"the projection shows {' and '.join(KINDS)}; you asked for {kind!r}.")
    if eps not in EPS:
        raise CourseError(f"the projection shows eps from {', '.join(f'{e:g}' for e in EPS)}; you asked for {eps!r}.")
    controls = {
        "kind": ipywidgets.Dropdown(
            options=[(label, key) for key, label in KINDS.items()], value=kind, description="norm", layout=wide(170)
        ),
        "eps": ipywidgets.SelectionSlider(
            options=[(f"{e:g}", e) for e in EPS], value=eps, description="eps", layout=wide(230)
        ),
        "x_turn": ipywidgets.IntSlider(60, 0, 345, 15, description="turn x", layout=wide(250)),
        "x_mean": ipywidgets.FloatSlider(0.5, min=-2.0, max=2.0, step=0.5, description="mean of x", layout=wide(260)),
        "x_std": ipywidgets.SelectionSlider(
            options=[(f"{s:g}", s) for s in STDS], value=1.0, description="std of x", layout=wide(230)
        ),
        "push_turn": ipywidgets.IntSlider(15, 0, 345, 15, description="turn wdy", layout=wide(260)),
        "push_mean": ipywidgets.FloatSlider(
            0.75, min=-1.0, max=1.0, step=0.25, description="mean of wdy", layout=wide(280)
        ),
        "view": ipywidgets.IntSlider(285, 0, 345, 15, description="walk around", layout=wide(270)),
    }

    def redraw(
        kind: str,
        eps: float,
        x_turn: float,
        x_mean: float,
        x_std: float,
        push_turn: float,
        push_mean: float,
        view: float,
    ) -> Picture:
        return draw(model(kind, row(x_turn, x_mean, x_std), push(push_turn, push_mean), eps), view)

    return LiveFigure(redraw, controls)
