"""Charts of stored measurements: time over floor against the row length, one operation at a time,
or bars if there is no row length."""

from __future__ import annotations

import math

from course_lib.base.translation import gettext as _
from course_lib.bench.measurement import Measurement
from course_lib.lessons import style
from course_lib.lessons.kit.output import MovingPicture
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

# A provider without a colour of its own has that of a provider it is related to, or of a tensor,
# and a dash.
_LOOKS = {
    **{
        "persistent": ("resident", ""),
        "two-stage": ("blocked", ""),
        "locked": ("tutorial", ""),
        "kernels": ("resident", ""),
    },
    **{
        "columns": ("b", ""),
        "split": ("chan", "6 3"),
        "few_rows": ("naive", "2 3"),
        "unfused": ("torch", "2 3"),
        "apex": ("shifted", ""),
    },
    **{
        "flash_attn": ("mean", "6 3"),
        "resident_welford": ("welford", "2 3"),
        "typed": ("tutorial", "2 3"),
    },
    **{
        "liger_cutedsl": ("liger", "6 3"),
        "quack_tuned": ("quack", "6 3"),
        "flashinfer": ("compile", "2 3"),
        "cudnn": ("torch", "6 3"),
    },
}
_HIGHEST = 4.0  # longer times are drawn at the upper edge


def over_floor(measured: Measurement) -> MovingPicture:
    """Show time over floor. ``measured`` has rows with op (optional), provider, dtype, N and
    over_floor."""
    views = []
    for op, dtype in dict.fromkeys(
        (row.get("op", measured.kind), row["dtype"]) for row in measured.rows
    ):
        rows = [
            row
            for row in measured.rows
            if (row.get("op", measured.kind), row["dtype"]) == (op, dtype)
        ]
        lengths = sorted({row["N"] for row in rows})
        lines = []
        for provider in dict.fromkeys(row["provider"] for row in rows):
            ratios = {row["N"]: row["over_floor"] for row in rows if row["provider"] == provider}
            most = max(ratios.values())
            name = provider
            if most > _HIGHEST:
                name = _("{provider}, up to {most}x").format(
                    provider=provider, most=f"{most:.{0 if most >= 10 else 1}f}"
                )
            lines.append(
                Series(
                    name,
                    range(len(lengths)),
                    [ratios.get(N, math.nan) for N in lengths],
                    *_find_look(provider),
                )
            )
        high = _HIGHEST if any(row["over_floor"] > _HIGHEST for row in rows) else None
        plot = Plot(
            Axis(_("columns N"), ticks=[(i, str(N)) for i, N in enumerate(lengths)]),
            Axis(_("time over the floor"), low=0.0, high=high, unit="x"),
            lines,
            [Level(1.0, _("the floor"))],
        )
        name = f"{op.replace('_', ' ')}, {dtype}"
        views.append(
            View(
                _("Time over the floor: {name}").format(name=name),
                [plot],
                _("{told}.").format(told=measured.label()),
                name,
            )
        )
    alt = _("Time over floor of each provider by row length, {kind}, {source}.").format(
        kind=measured.kind, source=measured.label()
    )
    return chart(*views, control=_("operation"), alt=alt)


def host(measured: Measurement) -> MovingPicture:
    """Show bars per kind of call and operation. ``measured`` has rows with op, provider, passes and
    us."""
    bars = [(_(row["passes"]), row["op"], row["provider"], row["us"]) for row in measured.rows]
    first_row = measured.rows[0]
    source = _("{M} x {N}, {dtype}; {source}.").format(
        M=first_row["M"], N=first_row["N"], dtype=first_row["dtype"], source=measured.label()
    )
    return _draw_bars(_("Host time of an eager call"), bars, _("\u00b5s per call"), source)


def training(measured: Measurement) -> MovingPicture:
    """Show bars per norm, for the eager and the compiled model. ``measured`` has rows with norm,
    provider, compiled and ms."""
    panels = {True: _("model compiled"), False: _("model eager")}
    bars = [
        (panels[row["compiled"]], row["norm"], row["provider"], row["ms"]) for row in measured.rows
    ]
    return _draw_bars(
        _("Time of a training step"),
        bars,
        _("ms per step"),
        _("{told}.").format(told=measured.label()),
    )


def _draw_bars(
    title: str, bars: list[tuple[str, str, str, float]], unit: str, source: str
) -> MovingPicture:
    """Show bars (panel, group, provider, value), whose panels share one scale."""
    panels: dict[str, dict[str, list[Bar]]] = {}
    for panel, group, provider, value in bars:
        bar = Bar(provider, [(value, _find_look(provider)[0])], f"{value:.1f}")
        panels.setdefault(panel, {}).setdefault(group.replace("_", " "), []).append(bar)
    high = max(value for *_, value in bars)
    drawn = [
        Bars(list(groups.items()), unit, high=high, title=panel) for panel, groups in panels.items()
    ]
    return chart(View(title, drawn, source), alt=source)


def _find_look(provider: str) -> tuple[str, bool, bool, str]:
    """Return a provider's colour, that it has a line and dots, and its dash."""
    colour, dash = _LOOKS.get(provider, (provider if provider in style.COLOURS else "torch", ""))
    return colour, True, True, dash
