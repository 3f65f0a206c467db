"""The figures of lesson 11: the directions of the error of each mistake in dx, and the error that
bf16 statistics cause."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

import course_lib
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson11.missing_term.model import TERMS, model, size
from course_lib.lessons.pictures.chart.model import (
    Axis,
    Bar,
    Bars,
    Level,
    Plot,
    Series,
    View,
    chart,
)
from course_lib.norms import reference

EPS = 1e-5
RATIOS = (0.1, 1, 3, 10, 30, 100, 300, 1000)
PARTS = ((N_("along 1"), "mean"), (N_("along xhat"), "x"), (N_("in neither"), "masked"))


def measure_marks() -> dict[str, list[float]]:
    """Return for each mistake, by its words, the shares of its squared error along 1, along xhat
    and in neither; they add up to 1."""
    shares = {}
    for term in ("c2", "c1", "both", "divisor", "mean", "rstd", "w"):
        state = model("layer_norm", term)
        squares = [size(part) ** 2 for part in (state.along_one, state.along_xhat, state.rest)]
        shares[TERMS["layer_norm"][term]] = [square / size(state.error) ** 2 for square in squares]
    return shares


def show_marks() -> MovingPicture:
    """Show a bar for each mistake, split into the shares of its squared error along 1, along xhat
    and in neither."""
    colours = [colour for words, colour in PARTS]
    parts = [(_(words), colour) for words, colour in PARTS]
    bars = [
        Bar(_(mistake), list(zip(shares, colours, strict=True)), "")
        for mistake, shares in measure_marks().items()
    ]
    return chart(
        View(
            _("Where a mistake leaves its mark"),
            [Bars([("", bars)], _("share of the squared error"), high=1.0, parts=parts)],
        ),
        alt=_(
            "For seven mistakes in dx the shares of the squared error along 1, along xhat and in"
            " neither. c2 left out: all along 1. c1 left out: all along xhat. Both, 1/N left out,"
            " and the mean not subtracted: shared between the two. rstd or w left out: all in"
            " neither."
        ),
    )


def make_far_rows(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Return x and dy of 64 rows of 256 columns, fp32. Rows of x have standard deviation 1 and a
    mean within 5 % of ``ratio``; dy has mean 0.5."""
    rng = np.random.default_rng(0)
    spread, offsets = rng.standard_normal((64, 256)), rng.uniform(0.95, 1.05, (64, 1))
    return (ratio * offsets + spread).astype(np.float32), rng.normal(0.5, size=(64, 256)).astype(
        np.float32
    )


def compute_dx(x: np.ndarray, dy: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Compute dx of LayerNorm with w = 1 by the course's kernel, from statistics that were rounded
    to ``dtype``. Returns: float64."""
    saved = reference.layer_norm(x, eps=EPS)
    device = course_lib.DEVICE
    mean, rstd = (
        torch.tensor(values).to(dtype).to(device, torch.float32)
        for values in (saved.mean, saved.rstd)
    )
    x_there, dy_there = (torch.tensor(values, device=device) for values in (x, dy))
    return reference.float64(layer_norm_backward(dy_there, x_there, None, mean, rstd)[0])


@cache
def measure_saved_statistics() -> tuple[tuple[float, ...], dict[str, list[float]], float]:
    """Return RATIOS, the relative error of dx at each for statistics in "fp32" and "bf16", and the
    error of rounding dx itself to bf16."""
    cost: dict[str, list[float]] = {"fp32": [], "bf16": []}
    one_rounding = 0.0
    for ratio in RATIOS:
        x, dy = make_far_rows(ratio)
        want = reference.layer_norm_vjp(dy, x, eps=EPS).dx
        for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
            cost[name].append(_relative(compute_dx(x, dy, dtype), want))
        one_rounding = _relative(reference.float64(torch.tensor(want).bfloat16()), want)
    return RATIOS, cost, one_rounding


def _relative(actual: np.ndarray, want: np.ndarray) -> float:
    return float(np.linalg.norm(actual - want) / np.linalg.norm(want))


def show_saved_statistics() -> MovingPicture:
    """Show the relative error of dx against mean over standard deviation, for statistics saved in
    fp32 and bf16."""
    ratios, off, one_rounding = measure_saved_statistics()
    lines = [
        Series(_("statistics in {dtype}").format(dtype=dtype), ratios, off[dtype], colour)
        for dtype, colour in (("bf16", "one_pass"), ("fp32", "two_pass"))
    ]
    plot = Plot(
        Axis(_("mean / standard deviation of the row"), log=True),
        Axis(_("error of dx over its size"), log=True),
        lines,
        [Level(one_rounding, _("storing dx in bf16"))],
    )
    return chart(
        View(_("Far from 0, bf16 statistics cost dx more than rounding dx does"), [plot]),
        alt=_(
            "Error of dx over its size against mean over standard deviation, both axes logarithmic."
            " Statistics in bf16 cost about what storing dx in bf16 costs up to mean/std 1, and far"
            " more from 10 on. Statistics in fp32 stay below a tenth of the error of storing dx up"
            " to 1000."
        ),
    )
