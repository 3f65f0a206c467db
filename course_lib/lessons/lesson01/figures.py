"""The figures of lesson 01: what operations and one kernel move, the size of values through many
layers, and elements that share a mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.block_stepper.widget import block_stepper
from course_lib.lessons.pictures.chart.model import (
    Axis,
    Bar,
    Bars,
    Cells,
    Level,
    Plot,
    Series,
    View,
    chart,
)

_COLOURS = ("x", "rstd", "y")
NORMS: dict[str, tuple[int, ...]] = {
    "LayerNorm": (2,),
    "BatchNorm": (0, 1),
    "InstanceNorm": (1,),
}  # axes of (B, T, C) over which one mean is taken

# What a LayerNorm moves, in matrices of M x N: each step with the matrices that it reads, and those
# that it writes.
TRAFFIC: dict[str, list[tuple[str, int, int]]] = {
    N_("operations"): [
        (N_("mean of each row"), 1, 0), (N_("subtract the mean"), 1, 1), (N_("square"), 1, 1),
        (N_("mean of the squares"), 1, 0),
        (N_("divide by the root"), 1, 1), (N_("multiply by w"), 1, 1), (N_("add b"), 1, 1),
    ],
    N_("one kernel"): [(N_("all steps"), 1, 1)],
}  # fmt: skip


def step_norm_kernel(row: Sequence[float]) -> MovingPicture:
    """Step the first kernel of the page, whose deviation has no mask, over 8 numbers at most."""
    return block_stepper("layer_norm", [row], 8, mask_deviation=False, one_block=True, eps=0.0)


def count_traffic(way: str) -> int:
    """Count the matrices that ``way``, a key of TRAFFIC, reads and writes."""
    return sum(read + written for step, read, written in TRAFFIC[way])


def show_traffic() -> MovingPicture:
    """Show a bar for each operation of a LayerNorm and one for a kernel that does them all: the
    matrices that they read and write."""
    groups = [
        (
            _("{way}: {count} matrices").format(way=_(way), count=count_traffic(way)),
            [Bar(_(name), [(read, "x"), (written, "y")]) for name, read, written in steps],
        )
        for way, steps in TRAFFIC.items()
    ]
    bars = Bars(
        groups, _("matrices of M x N elements"), parts=[(_("read"), "x"), (_("written"), "y")]
    )
    title = _("One kernel moves {one} matrices, single operations move {many}")
    title = title.format(one=count_traffic("one kernel"), many=count_traffic("operations"))
    steps_text = _("; ").join(
        _("{name} reads {read} and writes {written}").format(
            name=_(name), read=read, written=written
        )
        for name, read, written in TRAFFIC["operations"]
    )
    alt = _("Bars. {told}. One kernel reads 1 and writes 1.").format(told=steps_text)
    return chart(View(title, [bars], _("Counted, not measured.")), alt=alt)


def measure_sizes(layers: int = 100, width: int = 64) -> dict[str, list[float]]:
    """Return the root mean square of 64 rows before the first random layer, where it is 1, and
    after each.

    A layer is a rotation times a gain: 1.1, 0.9, or 1.1 with a norm after it.
    """

    def pass_layers(gain: float, *, normalise: bool) -> list[float]:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((64, width))
        x /= np.sqrt((x**2).mean())
        sizes = [float(np.sqrt((x**2).mean()))]
        for _layer in range(layers):
            # keeps the size of a row
            rotation = np.linalg.qr(rng.standard_normal((width, width)))[0]
            x = x @ (gain * rotation)
            if normalise:
                x = x / np.sqrt((x**2).mean(axis=1, keepdims=True))
            sizes.append(float(np.sqrt((x**2).mean())))
        return sizes

    return {
        N_("each layer 1.1 times"): pass_layers(1.1, normalise=False),
        N_("each layer 0.9 times"): pass_layers(0.9, normalise=False),
        N_("1.1 times, then x / rms(x)"): pass_layers(1.1, normalise=True),
    }


def through_layers() -> MovingPicture:
    """Show the size of the numbers after each layer, on a logarithmic axis, with a mark at the
    largest fp16 number."""
    lines = [
        Series(_(label), range(len(sizes)), sizes, colour, dots=False)
        for (label, sizes), colour in zip(measure_sizes().items(), _COLOURS, strict=True)
    ]
    y = Axis(_("root mean square (first row: 1)"), log=True, low=1e-5, high=1e6)
    plot = Plot(
        Axis(_("layers passed")), y, lines, [Level(65504, _("65504, the largest fp16 number"))]
    )
    return chart(
        View(
            _("Layers of 1.1 times multiply a row by almost 14,000; a norm keeps its size at 1"),
            [plot],
        ),
        alt=_(
            "Root mean square of the numbers after each of 100 layers, on a logarithmic axis. With"
            " layers of 1.1 times the curve rises in a straight line to almost 14,000, with layers"
            " of 0.9 times it falls below 0.0001. With a division by the root mean square after"
            " each layer it stays at 1."
        ),
    )


def count_means(norm: str, B: int, T: int, C: int) -> int:
    """Count the means that ``norm`` takes of x of shape (B, T, C)."""
    return len(
        {number for plane in _number_means(norm, B, T, C) for row in plane for number in row}
    )


def shared_means(B: int, T: int, C: int) -> MovingPicture:
    """Show x of shape (B, T, C) once per norm, with the number of its mean in each element."""
    rows = [
        words
        for b in range(B)
        for words in (_("sequence {b}").format(b=b), *(f"token {t}" for t in range(T)))
    ]
    blank = [None] * C
    panels = []
    for norm in NORMS:
        words = [
            line
            for plane in _number_means(norm, B, T, C)
            for line in (blank, *([str(number) for number in row] for row in plane))
        ]
        looks = [["active" if word == "0" else "waiting" for word in line] for line in words]
        title = _("{norm}: {count} means").format(norm=norm, count=count_means(norm, B, T, C))
        panels.append(Cells(rows, [""] * C, words, looks, title=title, column_name=_("channels")))
    return chart(
        View(_("Equal numbers share a mean"), panels),
        alt=_(
            "A tensor of {B} sequences, {T} tokens, {C} channels, drawn three times; each element"
            " carries the number of the mean it belongs to. LayerNorm: the channels of a token"
            " share a mean. BatchNorm: a channel shares one over all tokens of both sequences."
            " InstanceNorm: a channel shares one over the tokens of one sequence."
        ).format(B=B, T=T, C=C),
    )


def _number_means(norm: str, B: int, T: int, C: int) -> Sequence[Sequence[Sequence[int]]]:
    axes = NORMS[norm]
    statistics_shape = tuple(1 if axis in axes else size for axis, size in enumerate((B, T, C)))
    return np.broadcast_to(
        np.arange(int(np.prod(statistics_shape))).reshape(statistics_shape), (B, T, C)
    ).tolist()
