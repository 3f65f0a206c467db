"""Lesson 08: leave a term of the VJP out, and read from the error of dx which one it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture, wide
from course_lib.lessons.missing_term.model import (
    COLUMNS,
    GRADIENTS,
    KINDS,
    RATIOS,
    TERMS,
    WEIGHTS,
    MissingTermState,
    clean,
    describe,
    format_size,
    model,
    name_cause,
    size,
)

# colour, hatch, marker and line of each part; every one carries its name as well
_PARTS = {
    "along 1": {"facecolor": style.COLOURS["mean"], "hatch": "\\\\"},
    "along xhat": {"facecolor": style.COLOURS["x"], "hatch": ""},
    "in neither": {"facecolor": style.COLOURS["masked"], "hatch": "xx"},
}


def draw(state: MissingTermState) -> Picture:
    """dx by column beside the true dx; the error against xhat with its line; the sizes of the three parts."""
    figure = Figure(figsize=(style.WIDTH, 5.6))
    (top,), (bottom,) = figure.subfigures(2, 1, height_ratios=(1.0, 1.15), squeeze=False)
    _draw_dx(top.subplots(), state)
    line, bars = bottom.subplots(1, 2, width_ratios=(1.25, 1.0))
    _draw_line(line, state)
    _draw_parts(bars, state)
    figure.suptitle(name_cause(state), fontsize=12, weight="bold", x=0.01, ha="left")
    caption = describe(state)
    alt = (
        f"{name_cause(state)}. Above, dx and the true dx as bars by column. Below left, the error of dx against xhat with the line that fits "
        f"it best; below right, bars for the error along 1, along xhat and in neither. {caption}"
    )
    return Picture(style.png(figure, alt), alt, caption)


def _draw_dx(axes: Axes, state: MissingTermState) -> None:
    cols = np.arange(state.N)
    axes.bar(cols - 0.2, state.true, 0.4, label="true dx", **style.fill("dx"))
    axes.bar(cols + 0.2, state.dx, 0.4, label="dx computed", facecolor=style.PANEL, edgecolor="#A44A00", linewidth=1.4)
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.set(xlabel="column", ylabel="dx", xticks=cols[:: max(1, state.N // 16)], xlim=(-0.7, state.N - 0.3))
    _room(axes, np.concatenate([state.true, state.dx]), state)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2, frameon=False)
    axes.grid(axis="x", visible=False)


def _draw_line(axes: Axes, state: MissingTermState) -> None:
    reach = np.array([min(state.xhat.min(), 0.0), max(state.xhat.max(), 0.0)])
    error = np.where(np.abs(state.error) <= state.noise, 0.0, state.error)
    axes.plot(reach, state.intercept + state.slope * reach, color=style.INK, linestyle="--", marker="", linewidth=1.6)
    axes.plot(state.xhat, error, linestyle="", marker="D", color="#A44A00", markersize=6)
    axes.plot(
        [0],
        [clean(state.intercept, state)],
        linestyle="",
        marker="v",
        color=style.COLOURS["mean"],
        markersize=10,
        zorder=5,
    )
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.axvline(0, color=style.QUIET, linewidth=0.8)
    axes.set(xlabel="xhat of the column", ylabel="dx computed - true dx")
    axes.set_title(_equation(state), fontsize=style.FONT + 1)
    _room(axes, error, state)


def _equation(state: MissingTermState) -> str:
    """The line in words: "error = 0.168 - 0.102 * xhat + rest"."""
    terms = [format_size(state.intercept, state)] if clean(state.intercept, state) else []
    if slope := clean(state.slope, state):
        sign = ("- " if slope < 0 else "+ ") if terms else ("-" if slope < 0 else "")
        terms.append(f"{sign}{format_size(abs(slope), state)} * xhat")
    if clean(size(state.rest), state):
        terms.append("+ rest" if terms else "rest")
    return f"error = {' '.join(terms) or '0'}"


def _draw_parts(axes: Axes, state: MissingTermState) -> None:
    parts = {"along 1": state.along_one, "along xhat": state.along_xhat, "in neither": state.rest}
    sizes = [clean(size(values), state) for values in parts.values()]
    looks: dict[str, Any] = {key: [look[key] for look in _PARTS.values()] for key in ("facecolor", "hatch")}
    axes.barh(range(3), sizes, 0.6, edgecolor=style.INK, linewidth=0.8, **looks)
    for at, value in enumerate(sizes):
        axes.annotate(
            format_size(value, state), (value, at), (4, 0), textcoords="offset points", va="center", weight="bold"
        )
    axes.set(yticks=range(3), yticklabels=list(parts), ylim=(2.6, -0.6), xlim=(0, 1.35 * (max(sizes) or 1.0)))
    axes.set_xlabel("size (root mean square)")
    axes.set_title("parts of the error", fontsize=style.FONT + 1)
    axes.grid(axis="y", visible=False)


def _room(axes: Axes, values: np.ndarray, state: MissingTermState) -> None:
    """Limits that keep 0 in sight and do not blow rounding up to the height of the picture."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if high - low <= state.noise:
        low, high = -0.1 * size(state.wdy) * state.rstd, 0.1 * size(state.wdy) * state.rstd
    axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))


def missing_term(kind: str = "layer_norm", term: str = "none") -> LiveFigure:
    """Choose a mistake in dx and a row, and see the error along 1, along xhat and in neither.

    Args:
        kind: "layer_norm" or "rms_norm".
        term: the mistake to begin with, a key of TERMS[kind].

    Raises: CourseError as :func:`model`.
    """
    model(kind, term)
    controls = {
        "kind": ipywidgets.Dropdown(
            options=[(label, key) for key, label in KINDS.items()], value=kind, description="norm", layout=wide(170)
        ),
        "term": ipywidgets.Dropdown(options=_options(kind), value=term, description="wrong", layout=wide(330)),
        "gradient": ipywidgets.Dropdown(
            options=[(label, key) for key, label in GRADIENTS.items()], value="random", description="dy", layout=wide(240)
        ),
        "weights": ipywidgets.Dropdown(
            options=[(label, key) for key, label in WEIGHTS.items()], value="random", description="w", layout=wide(190)
        ),
        "ratio": ipywidgets.SelectionSlider(options=[(f"{r:g}", r) for r in RATIOS], value=3.0, description="mean/std", layout=wide(270)),
        "columns": ipywidgets.SelectionSlider(options=COLUMNS, value=16, description="N columns", layout=wide(260)),
    }  # fmt: skip

    def arrange(controls: Mapping[str, Any]) -> None:
        options, chosen = _options(controls["kind"].value), controls["term"].value
        if controls["term"].options != options:
            controls["term"].options = options
            controls["term"].value = chosen

    def redraw(kind: str, term: str, gradient: str, weights: str, ratio: float, columns: int) -> Picture:
        return draw(model(kind, term, ratio, columns, weights, gradient))

    return LiveFigure(redraw, controls, arrange=arrange)


def _options(kind: str) -> tuple[tuple[str, str], ...]:
    return tuple((label, key) for key, label in TERMS[kind].items())
