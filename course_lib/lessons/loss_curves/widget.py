"""Lesson 10: losses of the same training with two norms, their difference on an axis of its own, and where they part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture, wide
from course_lib.lessons.loss_curves.model import LIMITS, LossState, describe, model, title

_LOOKS = ("ours", "blocked", "quack", "liger", "compile")  # of the runs that are compared, in their order
_LINES = ("--", ":", "-.", (0, (6, 1, 1, 1)), (0, (9, 2)))
_FEED = 10  # steps between two drawings while losses come in


def draw(state: LossState, steps: int | None = None) -> Picture:
    """Both curves above, the size of their difference below on a logarithmic axis, with the limit and the step where they part."""
    figure = Figure(figsize=(style.WIDTH, 5.2))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1.35, 1.0))
    _draw_losses(top, state)
    _draw_gaps(bottom, state)
    bottom.set_xlabel("step")
    bottom.set_xlim(-0.5, max(steps or 1, len(state.wanted), len(state.losses)) - 0.5)
    figure.suptitle(title(state), fontsize=12, weight="bold", x=0.01, ha="left")
    caption = describe(state)
    alt = f"{title(state)}. Above, the two losses by step; below, the size of their difference on a logarithmic axis. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _draw_losses(axes: Axes, state: LossState) -> None:
    look = style.COLOURS[_LOOKS[state.number % len(_LOOKS)]]
    # the reference is wide and light in print, so that a curve on top of it shows it on both sides
    axes.plot(state.wanted, color=style.COLOURS["torch"], linewidth=5.0, alpha=0.45, marker="", label=state.reference)
    axes.plot(
        state.losses,
        color=look,
        linestyle=_LINES[state.number % len(_LINES)],
        linewidth=1.7,
        marker="",
        label=state.run,
    )
    if state.baseline is not None:
        axes.axhline(state.baseline, color=style.INK, linewidth=1.0, linestyle=":")
        axes.annotate(
            "entropy of single characters", (1.0, state.baseline), (-4, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", path_effects=[withStroke(linewidth=4, foreground=style.PANEL)],
        )  # fmt: skip
    axes.set_ylabel("loss, nats a character")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0.2)


def _draw_gaps(axes: Axes, state: LossState) -> None:
    gaps, floor = state.gaps, 1e-8
    steps = np.arange(len(gaps))
    look = style.COLOURS[_LOOKS[state.number % len(_LOOKS)]]
    differ = gaps > 0
    axes.plot(steps[differ], gaps[differ], linestyle="", marker="o", markersize=4, color=look)
    axes.plot(
        steps[~differ],
        np.full((~differ).sum(), floor),
        linestyle="",
        marker="|",
        markersize=7,
        color=style.QUIET,
        markeredgecolor=style.QUIET,
    )
    if (~differ).any():
        axes.annotate(
            "| equal", (1.0, floor), (-4, 5), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right"
        )
    axes.axhline(state.limit, color=style.INK, linewidth=1.0, linestyle="--")
    if state.parts is not None:
        axes.axvline(state.parts, color=style.INK, linewidth=1.2)
        right = state.parts < 0.7 * max(1, len(gaps))
        axes.annotate(
            f"step {state.parts}",
            (state.parts, floor),
            (5 if right else -5, 14),
            textcoords="offset points",
            ha="left" if right else "right",
        )
    axes.set(
        yscale="log", ylim=(floor / 2, max(1.0, 2 * float(np.nanmax(gaps, initial=0.0)))), ylabel="|difference|, nats"
    )


class LossCurves(LiveFigure):
    """The curves, with a menu of runs, the steps shown, and the limit; :meth:`add` takes losses as they come."""

    def __init__(self, runs: Mapping[str, Iterable[float]], steps: int, baseline: float | None, show: str | None):
        self.runs = {name: [float(loss) for loss in losses] for name, losses in runs.items()}
        self.steps = steps
        names = list(self.runs)
        if len(names) < 2:
            raise CourseError("loss_curves needs two runs at least: the one to compare with, and another.")
        if show is not None and show not in names[1:]:
            raise CourseError(f"loss_curves has no run {show!r} to show; there are {', '.join(names[1:])}.")

        def redraw(run: str, until: int, limit: float) -> Picture:
            return draw(model(self.runs, run, until, limit, baseline), until)

        super().__init__(redraw, {
            "run": ipywidgets.Dropdown(options=names[1:], value=show or names[1], description="run", layout=wide(330)),
            "until": ipywidgets.IntSlider(steps, 1, steps, 1, description="steps", layout=wide(300)),
            "limit": ipywidgets.Dropdown(options=list(LIMITS.items()), value=1e-3, description="apart", layout=wide(250)),
        })  # fmt: skip

    def add(self, run: str, loss: float) -> None:
        """Take the next loss of ``run``; every tenth is drawn, and the last.

        Raises: KeyError if there is no such run.
        """
        losses = self.runs[run]
        losses.append(float(loss))
        if run == self.controls["run"].value and (len(losses) % _FEED == 0 or len(losses) == self.steps):
            self._redraw()


def loss_curves(
    runs: Mapping[str, Iterable[float]],
    steps: int | None = None,
    baseline: float | None = None,
    show: str | None = None,
) -> LossCurves:
    """Losses of the same training, the first run against each of the others; stored, or empty and fed with ``add``.

    Args:
        runs: losses by name, in nats a character; the first is the reference.
        steps: how many there will be; None takes the longest run's.
        baseline: a loss to beat, drawn as a line.
        show: the run that is compared first; None takes the second of runs.

    Raises: CourseError if there are fewer than two runs, or no steps.
    """
    runs = {name: list(losses) for name, losses in runs.items()}
    steps = steps or max((len(losses) for losses in runs.values()), default=0)
    if steps < 1:
        raise CourseError(
            "loss_curves has nothing to draw: no run has a step. Say with `steps` how many there will be."
        )
    return LossCurves(runs, steps, baseline, show)
