"""The figure of lesson 16: the cost of long rows in each design."""

from __future__ import annotations

from matplotlib.figure import Figure

from course_lib.bench.measurement import Measurement
from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

_NAMES = {
    "torch": ("torch", "PyTorch"),
    "blocked": ("blocked", "one program per row"),
    "few_rows": ("resident", "two launches"),
    "split": ("ours", "one launch, words"),
}


def show_long_rows(measured: Measurement) -> Picture:
    """Draw LayerNorm's time over the floor: a group of bars per shape, one bar per provider of ``measured``. Alt text has the numbers."""
    words = "; ".join(f"{row['M']} x {row['N']}, {_NAMES[row['provider']][1]}: {row['over_floor']:.2g}" for row in measured.rows)
    return picture(long_rows(measured), f"{_title(measured)}. Time of LayerNorm forward over the floor, {measured.label()}. {words}.")


def long_rows(measured: Measurement) -> Figure:
    """Draw the bars. ``measured`` has rows with provider, M, N and over_floor."""
    shapes = list(dict.fromkeys((row["M"], row["N"]) for row in measured.rows))
    providers = [name for name in _NAMES if any(row["provider"] == name for row in measured.rows)]
    times = {(row["M"], row["N"], row["provider"]): row["over_floor"] for row in measured.rows}
    figure = Figure(figsize=(style.WIDTH, 1.5 + 0.3 * len(shapes) * (len(providers) + 0.9)))
    axes = figure.add_subplot()
    y, ticks = 0.0, []
    for M, N in shapes:
        first = y
        for name in providers:
            look, label = _NAMES[name]
            value = times[M, N, name]
            axes.barh(y, value, height=0.86, left=0, **style.fill(look))
            axes.annotate(f"{label}: {value:.{0 if value >= 20 else 1}f}", (value, y), (6, 0), textcoords="offset points", va="center")
            y += 1
        ticks.append(((first + y - 1) / 2, f"{M} x {N}"))
        y += 0.9
    axes.axvline(1.0, color=style.COLOURS["floor"], linewidth=1.2, linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64, 128, 256], ["1", "2", "4", "8", "16", "32", "64", "128", "256"])
    axes.set_yticks([at for at, _ in ticks], [words for _, words in ticks])
    # leave room for the label of the longest bar
    axes.set(xlim=(0.75, 8 * max(times.values())), ylim=(y - 0.9, -0.7), xlabel=f"time over the floor (fp16)\n{measured.label()}")
    axes.grid(axis="y", visible=False)
    axes.set_title(_title(measured))
    return figure


def _title(measured: Measurement) -> str:
    """Write the title with the numbers of ``measured``, so that it is true for any measurement."""
    worst = {name: max((row["over_floor"] for row in measured.rows if row["provider"] == name), default=0.0) for name in _NAMES}
    if worst["split"]:
        return f"A row shared by programs takes {max(worst['split'], worst['few_rows']):.1f} times the floor at most"
    return f"One program per row and few rows: up to {worst['torch']:.0f} times the floor"
