"""Figures of stored measurements: time over floor against the row length, one panel per operation, or bars if there is no row length."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.bench.measurement import Measurement
from course_lib.lessons import style

_KEYS = {"persistent": "resident", "two-stage": "blocked", "locked": "tutorial", "kernels": "resident"}
# providers without a colour in the course's palette; they also differ in line and marker
_OTHERS = {
    "columns": {"color": "#8A8F2A", "linestyle": ":", "marker": "s"},
    "split": {"color": "#4B9CD3", "linestyle": (0, (3, 1)), "marker": "<"},
    "few_rows": {"color": "#1F4E79", "linestyle": (0, (2, 2)), "marker": "p"},
    "unfused": {"color": "#7A5C3E", "linestyle": (0, (1, 1)), "marker": ">"},
    "apex": {"color": "#5C2E91", "linestyle": (0, (4, 1, 1, 1)), "marker": "h"},
    "flash_attn": {"color": "#C0392B", "linestyle": (0, (2, 3)), "marker": "*"},
    "resident_welford": {"color": style.COLOURS["welford"], "linestyle": ":", "marker": "D"},
    "typed": {"color": "#8C8C8C", "linestyle": ":", "marker": "X"},
}
_HIGHEST = 4.0  # longer times are drawn at the upper edge


def over_floor(measured: Measurement) -> Figure:
    """Draw time over floor. ``measured`` has rows with op (optional), provider, dtype, N and over_floor."""
    panels = list(dict.fromkeys((row.get("op", measured.kind), row["dtype"]) for row in measured.rows))
    figure = Figure(figsize=(style.WIDTH + 1.5, 3.5 * len(panels)))
    for number, (op, dtype) in enumerate(panels):
        axes = figure.add_subplot(len(panels), 1, number + 1)
        rows = [row for row in measured.rows if (row.get("op", measured.kind), row["dtype"]) == (op, dtype)]
        lengths = sorted({row["N"] for row in rows})
        beyond = {}
        for provider in dict.fromkeys(row["provider"] for row in rows):
            own = {row["N"]: row["over_floor"] for row in rows if row["provider"] == provider}
            heights = [min(own.get(N, math.nan), _HIGHEST) for N in lengths]  # NaN leaves a gap in the line if there is no time
            look: dict[str, Any] = {"linewidth": 2.6, "zorder": 3} if provider == "ours" else {"linewidth": 1.4}
            if max(own.values()) > _HIGHEST:
                beyond[provider] = max(own.values())
            axes.plot(range(len(lengths)), heights, **_line(provider) | look)
        axes.axhline(1.0, color=style.COLOURS["floor"], linewidth=1.2, linestyle="--")
        axes.set_xticks(range(len(lengths)), [f"{N}" for N in lengths])
        axes.tick_params("x", rotation=30 if len(lengths) > 7 else 0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axes.set(ylabel="time over floor", xlim=(-0.3, len(lengths) - 0.7))
        if beyond:
            axes.set_ylim(0, _HIGHEST * 1.03)
        else:
            axes.set_ylim(0, None)
        axes.set_title(f"{op.replace('_', ' ')}, {dtype}")
        handles, labels = axes.get_legend_handles_labels()
        named = [f"{name}, up to {beyond[name]:.{0 if beyond[name] >= 10 else 1}f}x" if name in beyond else name for name in labels]
        axes.legend(handles, named, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.axes[-1].set_xlabel(f"columns N; {measured.label()}; dashed: the floor")
    return figure


def host(measured: Measurement) -> Figure:
    """Draw a panel per kind of call and a group of bars per operation. ``measured`` has rows with op, provider, passes and us."""
    groups = {}
    for row in measured.rows:
        groups.setdefault(row["passes"], []).append((row["op"].replace("_", " "), row["provider"], row["us"]))
    first = measured.rows[0]
    return _bars(groups, "us a call", f"{first['M']} x {first['N']}, {first['dtype']}; {measured.label()}")


def training(measured: Measurement) -> Figure:
    """Draw a panel each for eager and compiled, and a group of bars per norm. ``measured`` has rows with norm, provider, compiled and ms."""
    groups = {}
    for row in measured.rows:
        group = groups.setdefault("model compiled" if row["compiled"] else "model eager", [])
        group.append((row["norm"].replace("_", " "), row["provider"], row["ms"]))
    return _bars(groups, "ms a step", measured.label())


def _bars(groups: dict[str, list[tuple[str, str, float]]], unit: str, source: str) -> Figure:
    """Draw horizontal bars with their names and numbers; the panels share one scale."""
    heights = [1.2 + 0.27 * (len(bars) + len({group for group, _, _ in bars})) for bars in groups.values()]
    figure = Figure(figsize=(style.WIDTH, sum(heights)))
    every = figure.subplots(len(groups), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    for axes, (title, bars) in zip(every, groups.items(), strict=True):
        place, ticks = 0.0, {}
        for group in dict.fromkeys(group for group, _, _ in bars):
            axes.annotate(group, (0, place), (4, 0), textcoords="offset points", va="center", weight="bold")
            for provider, value in [(p, v) for g, p, v in bars if g == group]:
                place += 1
                axes.barh(place, value, height=0.8, color=_line(provider)["color"], edgecolor=style.INK, linewidth=0.6)
                axes.annotate(f"{value:.1f}", (value, place), (4, 0), textcoords="offset points", va="center")
                ticks[place] = provider
            place += 1.2
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.set_ylim(place - 0.4, -0.7)
        axes.grid(axis="y", visible=False)
        axes.set_title(title)
    every[0].set_xlim(0, 1.12 * max(value for bars in groups.values() for _, _, value in bars))
    every[-1].set_xlabel(f"{unit}; {source}")
    return figure


def _line(provider: str) -> dict:
    if provider in _OTHERS:
        return _OTHERS[provider] | {"label": provider}
    key = _KEYS.get(provider, provider)
    return style.line(key if key in style.COLOURS else "torch", label=provider)
