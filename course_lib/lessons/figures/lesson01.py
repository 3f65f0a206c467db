"""The three figures of lesson 01: values through many layers, which elements share a mean, and what eps does to a small row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style

_LOOKS = {"x": "-", "rstd": "--", "y": "-."}


def through_layers(sizes: Mapping[str, Sequence[float]]) -> Figure:
    """The size of the numbers after each layer, on a logarithmic axis, with a mark where fp16 ends.

    Args:
        sizes: by label, the rms before the first layer and after each; at most three, the last with a norm after each layer.
    """
    figure = Figure()
    axes = figure.add_subplot()
    for (label, values), (look, line) in zip(sizes.items(), _LOOKS.items(), strict=False):
        axes.plot(values, color=style.COLOURS[look], linestyle=line, marker="")
        middle, rises = len(values) // 2, values[-1] > 2
        axes.annotate(
            label,
            (middle, values[middle]),
            (-4 if rises else 4, 8),
            textcoords="offset points",
            ha="right" if rises else "left",
        )
    axes.axhline(65504, color=style.QUIET, linestyle=":", linewidth=1.2)
    axes.annotate("65504, the end of fp16", (0, 65504), (4, -13), textcoords="offset points", color=style.QUIET)
    last = len(next(iter(sizes.values()))) - 1
    axes.set(yscale="log", xlabel="layers passed", ylabel="rms of the numbers", ylim=(1e-5, 1e6), xlim=(0, last))
    axes.set_title("A tenth a layer becomes thousands; a norm after each layer keeps it at 1")
    return figure


def shared_means(B: int, T: int, C: int) -> Figure:
    """x of shape (B, T, C) twice, each element with the number of the mean it belongs to: LayerNorm's and BatchNorm's."""
    cell_w, cell_h, gap = 0.5, 0.36, 0.5
    top, left, second = 1.3, 1.2, style.WIDTH / 2 + 0.85
    height = top + B * T * cell_h + (B - 1) * gap + 0.25
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(
        axes, 0.2, 0.28, "LayerNorm: one mean a token. BatchNorm: one mean a channel", font=style.FONT + 2, bold=True
    )
    for at, name, count in ((left, "LayerNorm", B * T), (second, "BatchNorm", C)):
        style.write(axes, at, 0.66, f"{name}: {count} means", bold=True)
        for c in range(C):
            style.write(axes, at + (c + 0.5) * cell_w, 1.0, f"c {c}", ha="center", colour=style.QUIET)
        for b in range(B):
            y = top + b * (T * cell_h + gap)
            style.write(axes, at - 0.08, y - 0.13, f"sequence {b}", ha="right", colour=style.QUIET)
            for t in range(T):
                if at == left:
                    style.write(axes, at - 0.1, y + (t + 0.5) * cell_h, f"token {t}", ha="right", colour=style.QUIET)
                _row(
                    axes,
                    (at, y + t * cell_h),
                    (cell_w, cell_h),
                    [b * T + t] * C if name == "LayerNorm" else list(range(C)),
                )
    return figure


def _row(axes: Axes, at: tuple[float, float], size: tuple[float, float], numbers: list[int]) -> None:
    """One token; what shares mean 0 is coloured and heavy."""
    for c, number in enumerate(numbers):
        style.cell(
            axes,
            (at[0] + c * size[0], at[1]),
            size,
            str(number),
            "waiting" if number else "active",
            heavy=not number,
            bold=not number,
        )


def small_rows(rms: Sequence[float], inside: Sequence[float], outside: Sequence[float], eps: float) -> Figure:
    """The rms of y against that of x, with eps inside the root and outside; the two thresholds are marked.

    Args:
        rms: of the rows, in rising order, above 0.
        inside, outside: rms of the normalised rows, ``x / sqrt(rms^2 + eps)`` and ``x / (rms + eps)``.
        eps: the one used.
    """
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(rms, inside, color=style.INK, linestyle="-", marker="")
    axes.plot(rms, outside, color=style.QUIET, linestyle="--", marker="")
    for at, name, y, ha in ((eps, "eps", 0.95, "right"), (eps**0.5, "sqrt(eps)", 0.02, "left")):
        axes.axvline(at, color=style.QUIET, linestyle=":", linewidth=1.2)
        axes.annotate(
            f"{name} = {_short(at)}", (at, y), (5 if ha == "left" else -5, 0), textcoords="offset points", ha=ha
        )
    axes.annotate("outside:\nx / (rms + eps)", (eps, 0.6), (-10, 0), textcoords="offset points", ha="right")
    axes.annotate("inside:\nx / sqrt(rms\u00b2 + eps)", (eps**0.5, 0.6), (14, -24), textcoords="offset points")
    axes.set(xscale="log", xlabel="rms of the row", ylabel="rms of y (large rows: 1)", ylim=(-0.02, 1.08))
    axes.set_title("Rows below sqrt(eps) stay small, or below eps if it stands outside")
    return figure


def _short(value: float) -> str:
    """Two digits, in Python's notation for small numbers without the padded exponent."""
    digits, _, exponent = f"{value:.2g}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits
