"""One picture of a stored measurement: time over floor against the row length, one panel an operation."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.bench.measurement import Measurement
from course_lib.widgets import style

_KEYS = {"persistent": "resident", "two-stage": "blocked", "locked": "tutorial", "columns": "two_pass", "split": "ours", "unfused": "torch"}
_HIGHEST = 4.0  # a design that takes longer is drawn at the edge, with its number


def over_floor(measured: Measurement) -> Figure:
    """``measured`` has rows with op (optional), provider, dtype, N and over_floor."""
    panels = sorted({(row.get("op", measured.kind), row["dtype"]) for row in measured.rows})
    figure = Figure(figsize=(style.WIDTH, 3.4 * len(panels)))
    for number, (op, dtype) in enumerate(panels):
        axes = figure.add_subplot(len(panels), 1, number + 1)
        rows = [row for row in measured.rows if (row.get("op", measured.kind), row["dtype"]) == (op, dtype)]
        lengths = sorted({row["N"] for row in rows})
        for provider in dict.fromkeys(row["provider"] for row in rows):
            points = sorted((lengths.index(row["N"]), min(row["over_floor"], _HIGHEST)) for row in rows if row["provider"] == provider)
            axes.plot(*zip(*points, strict=True), **_line(provider))
        for place, N in enumerate(lengths):
            beyond = [f"{row['provider']} {row['over_floor']:.0f}x" for row in rows if row["N"] == N and row["over_floor"] > _HIGHEST]
            axes.annotate("\n".join(beyond), (place, _HIGHEST), (4, -8), textcoords="offset points", va="top")
        axes.axhline(1.0, color=style.COLOURS["floor"], linewidth=1.2, linestyle="--")
        axes.set_xticks(range(len(lengths)), [f"{N}" for N in lengths])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axes.set(ylabel="time over floor", ylim=(0, _HIGHEST * 1.03 if any(r["over_floor"] > 2.5 for r in rows) else None))
        axes.set_title(f"{op.replace('_', ' ')}, {dtype}")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_xlabel(f"columns N; {measured.label()}; dashed: the floor")
    return figure


def _line(provider: str) -> dict:
    key = _KEYS.get(provider, provider)
    if key not in style.COLOURS:
        key = "torch"
    return style.line(key, label=provider)
