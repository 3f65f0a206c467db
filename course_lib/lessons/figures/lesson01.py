"""The figures of lesson 01: the size of values through many layers, and the elements that share a mean in each norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

_LOOKS = {"x": "-", "rstd": "--", "y": "-."}
NORMS: dict[str, tuple[int, ...]] = {
    "LayerNorm": (2,),
    "BatchNorm": (0, 1),
    "InstanceNorm": (1,),
}  # axes of (B, T, C) over which one mean is taken


def measure_sizes(layers: int = 100, width: int = 256) -> dict[str, list[float]]:
    """Return the root mean square of 64 rows before the first random layer and after each. Layers grow, shrink, or have a norm after each."""

    def pass_layers(gain: float, *, normalise: bool) -> list[float]:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((64, width))
        sizes = [float(np.sqrt((x**2).mean()))]
        for _ in range(layers):
            matrix = rng.standard_normal((width, width)) / np.sqrt(width)  # roughly keeps the size of a row
            x = x @ (gain * matrix)
            if normalise:
                x = x / np.sqrt((x**2).mean(axis=1, keepdims=True))
            sizes.append(float(np.sqrt((x**2).mean())))
        return sizes

    return {
        "each layer 1.1 times": pass_layers(1.1, normalise=False),
        "each layer 0.9 times": pass_layers(0.9, normalise=False),
        "1.1 times, then x / rms(x)": pass_layers(1.1, normalise=True),
    }


def through_layers() -> Picture:
    """Draw the size of the numbers after each layer, on a logarithmic axis, with a mark at the largest fp16 number."""
    sizes = measure_sizes()
    figure = Figure()
    axes = figure.add_subplot()
    for (label, values), (look, line) in zip(sizes.items(), _LOOKS.items(), strict=True):
        axes.plot(values, color=style.COLOURS[look], linestyle=line, marker="")
        middle, rises = len(values) // 2, values[-1] > 2
        axes.annotate(label, (middle, values[middle]), (-4 if rises else 4, 8), textcoords="offset points", ha="right" if rises else "left")
    axes.axhline(65504, color=style.QUIET, linestyle=":", linewidth=1.2)
    axes.annotate("65504, the end of fp16", (0, 65504), (4, -13), textcoords="offset points", color=style.QUIET)
    last = len(next(iter(sizes.values()))) - 1
    axes.set(yscale="log", xlabel="layers passed", ylabel="root mean square", ylim=(1e-5, 1e6), xlim=(0, last))
    axes.set_title("1.1 times for each layer becomes thousands; a norm keeps it at 1")
    return picture(
        figure,
        "Root mean square of the numbers after each of 100 layers, on a logarithmic axis. With layers of 1.1 times it rises in a straight "
        "line to over 5000, with layers of 0.9 times it falls below 0.0001. With a division by the root mean square after each layer it "
        "stays at 1.",
    )


def count_means(norm: str, B: int, T: int, C: int) -> int:
    """Count the means that ``norm`` takes of x of shape (B, T, C)."""
    return len({number for plane in _number_means(norm, B, T, C) for row in plane for number in row})


def shared_means(B: int, T: int, C: int) -> Picture:
    """Draw x of shape (B, T, C) once per norm, with the number of its mean in each element."""
    cell, gap, top, left = (0.38, 0.34), 0.45, 1.2, 1.15
    apart = C * cell[0] + 0.42
    height = top + B * T * cell[1] + (B - 1) * gap + 0.2
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.28, "Equal numbers share a mean (rows: tokens, columns: channels)", font=style.FONT + 2, bold=True)
    for place, norm in enumerate(NORMS):
        at, means = left + place * apart, _number_means(norm, B, T, C)
        style.write(axes, at, 0.68, f"{norm}: {count_means(norm, B, T, C)} means", bold=True)
        for b in range(B):
            y = top + b * (T * cell[1] + gap)
            style.write(axes, at, y - 0.14, f"sequence {b}", colour=style.QUIET)
            for t in range(T):
                if place == 0:
                    style.write(axes, at - 0.1, y + (t + 0.5) * cell[1], f"token {t}", ha="right", colour=style.QUIET)
                _draw_token(axes, (at, y + t * cell[1]), cell, means[b][t])
    return picture(
        figure,
        f"A tensor of {B} sequences, {T} tokens, {C} channels, drawn three times; each element carries the number of the mean it belongs to. "
        "LayerNorm: the channels of a token share a mean. BatchNorm: a channel shares one over all tokens of both sequences. InstanceNorm: a "
        "channel shares one over the tokens of one sequence.",
    )


def _number_means(norm: str, B: int, T: int, C: int) -> Sequence[Sequence[Sequence[int]]]:
    axes = NORMS[norm]
    own = tuple(1 if axis in axes else size for axis, size in enumerate((B, T, C)))
    return np.broadcast_to(np.arange(int(np.prod(own))).reshape(own), (B, T, C)).tolist()


def _draw_token(axes: Axes, at: tuple[float, float], size: tuple[float, float], numbers: Sequence[int]) -> None:
    """Draw one token. The elements of mean 0 are coloured and have a thick edge."""
    for c, number in enumerate(numbers):
        place = (at[0] + c * size[0], at[1])
        style.cell(axes, place, size, str(number), "waiting" if number else "active", heavy=not number, bold=not number)
