"""The figures of lesson 03: the two terms of one-pass on the line of fp32 numbers, rows of real
models, and errors of the variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.figures.norm_inputs import TRAINED, NormInput, read_norm_inputs
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson03.cancellation.model import NAMES
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, Series, View, chart
from course_lib.norms import statistics

RATIOS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)
COLUMNS, ROWS = 8192, 8


def draw_terms(x: Any, mean_square: Any, squared_mean: Any) -> MovingPicture:
    """Show E[x^2] and E[x]^2 of a row, exact and as computed in fp32, on the line of fp32 numbers.

    Args:
        x: one row, a tensor or array of shape (N,), fp32, whose E[x^2] and E[x]^2 are only a few
            fp32 numbers apart.
        mean_square, squared_mean: E[x^2] and E[x]^2 as computed in fp32.
    """
    wide = np.array([float(value) for value in x])
    terms = (
        ("E[x\u00b2]", (wide * wide).mean(), np.float32(float(mean_square)), 0.6, "one_pass"),
        ("E[x]\u00b2", wide.mean() ** 2, np.float32(float(squared_mean)), -0.6, "two_pass"),
    )
    step = float(np.spacing(terms[0][2]))
    ends = [float(value) for term in terms for value in term[1:3]]
    low, high = np.floor((min(ends) - 3 * step) / step) * step, max(ends) + 3 * step
    numbers = [float(number) for number in np.arange(low, high, step)]
    strokes = Series("", numbers, [0.0] * len(numbers), "quiet", line=False)
    lines = [
        Series(
            _("{name}, exact").format(name=name),
            [float(stored), float(exact)],
            [0.0, height],
            colour,
        )
        for name, exact, stored, height, colour in terms
    ]
    computed_variance = terms[0][2] - terms[1][2]
    x = Axis(
        _("each point is a number that fp32 can hold: one every {step:g}").format(step=step),
        low=low, high=high,
        ticks=sorted((float(term[2]), f"{term[2]:.10g}") for term in terms),
    )  # fmt: skip
    plot = Plot(x, Axis("", low=-1.0, high=1.0, ticks=()), [strokes, *lines])
    return chart(
        View(
            _("The computed difference is {left:g}; the variance is {variance:.3f}").format(
                left=computed_variance, variance=wide.var()
            ),
            [plot],
        ),
        alt=_(
            "A line on which fp32 numbers are points, {step:g} apart. The exact E[x\u00b2] and"
            " E[x]\u00b2 lie above and below it; lines go to the points where the computed ones"
            " lie. Their distance is {left:g}, and the variance is {variance:.3f}."
        ).format(step=step, left=computed_variance, variance=wide.var()),
    )


def show_real_rows() -> MovingPicture:
    """Show a dot per norm of three models: of its rows the largest |mean|/std or root mean square,
    or how large a column becomes."""
    measured = read_norm_inputs()
    models = (TRAINED, *(package["model"] for package in measured.packages))
    norms = [norm for model in models for norm in measured.of(model)]

    def make_view(
        name: str,
        title: str,
        unit: str,
        find: Callable[[NormInput], float],
        level: tuple[float, str] | None,
    ) -> View:
        series = []
        for place, model in enumerate(reversed(models)):
            *others, largest = sorted(map(find, measured.of(model)))
            series += [
                Series("", others, [place] * len(others), "x", line=False),
                Series(f"{largest:.3g}", [largest], [place], "x", line=False),
            ]
        ticks = [(place, _(model)) for place, model in enumerate(reversed(models))]
        plot = Plot(
            Axis(unit, log=True, low=0.1, high=100),
            Axis("", low=-0.5, high=len(models) - 0.5, ticks=ticks),
            series,
            [Level(*level, "x")] if level else [],
        )
        title = title.format(most=f"{max(map(find, norms)):.3g}")
        return View(
            title, [plot], _("A dot is a norm. {told}.").format(told=measured.label()), name
        )

    ratios_text = _("; ").join(
        _("{name}: {values}").format(
            name=_(model),
            values=_(", ").join(f"{norm.mean_over_std[-1]:.3g}" for norm in measured.of(model)),
        )
        for model in models
    )
    return chart(
        make_view(
            _("mean/std"), _("No row of these models has a mean of more than {most} standard "
                             "deviations"),
            _("largest |mean|/std of a row"),
            lambda norm: norm.mean_over_std[-1],
            (64, _("64: one-pass has lost half of the digits")),
        ),
        make_view(
            "rms", _("The rows have a root mean square of {most} at most"),
            _("largest root mean square of a row"),
            lambda norm: norm.rms[-1], None,
        ),
        make_view(
            _("columns"), _("No column is more than {most} times as large as the median column"),
            _("root mean square of the largest column, over that of the median column"),
            lambda norm: norm.largest_column, None,
        ),
        control=_("of the rows"),
        alt=_("Dots on a logarithmic axis, one for each norm, a row of them for each model, with a "
              "mark at 64. Largest |mean|/std of a row: {told}.").format(told=ratios_text),
    )  # fmt: skip


def show_against_bounds() -> MovingPicture:
    """Show a panel per algorithm: the relative error of every row in fp32, and the bound, against
    mean/std, on logarithmic axes."""
    ratios, measured, bounds = measure()[:3]
    panels = []
    for key, name in NAMES.items():
        errors = Series(
            "", np.repeat(ratios, ROWS).tolist(), measured[key].ravel().tolist(), key, line=False
        )
        bound = Series(_("bound"), ratios.tolist(), bounds[key].tolist(), dots=False, dash="7 4")
        y = Axis(_("relative error"), log=True, low=1e-9, high=1e6)
        panels.append(
            Plot(
                Axis(_("mean/std"), log=True),
                y,
                [errors, bound],
                [Level(1.0, _("no digit is right"))],
                _(name),
            )
        )
    return chart(
        View(
            _("Only one-pass loses digits with the square of mean/std"),
            panels,
            _("N = {N}, fp32; sums in pairs, Welford element by element.").format(N=COLUMNS),
        ),
        alt=_(
            "Six panels, relative error of the variance against mean/std on logarithmic axes,"
            " measured points below dashed bounds. Naive, two-pass and shifted one-pass stay near"
            " 1e-7 far to the right. One-pass rises with the square of mean/std and passes 1 near"
            " 3000. Welford and Chan rise slowly, to 1e-3 and 1e-4 at 30000."
        ),
    )


def measure() -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray], dict[str, bool]]:
    """Return RATIOS, and by algorithm the relative errors, shape (ratios, ROWS), the largest bound
    of each ratio, and whether the error of every row stays below its own bound."""
    ratios = np.array(RATIOS)
    x = (np.random.default_rng(0).standard_normal((ROWS, COLUMNS)) + ratios[:, None, None]).astype(
        np.float32
    )
    u = statistics.unit_roundoff(np.float32)
    true = x.astype(np.float64).var(axis=-1)
    measured, bounds, holds = {}, {}, {}
    for name in statistics.ALGORITHMS:
        kappa = statistics.condition_number(x, x[..., 0] if name == "shifted" else 0.0 * x[..., 0])
        limit = np.vectorize(lambda k, name=name: statistics.bound(name, COLUMNS, k, u))(kappa)
        measured[name] = np.abs(statistics.compute(name, x).var.astype(np.float64) - true) / true
        bounds[name], holds[name] = limit.max(axis=1), bool((measured[name] <= limit).all())
    return ratios, measured, bounds, holds
