"""The figures of lesson 10: which test sees which bug, and how fast the model trains with each norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from course_lib.lessons import style

PROVIDERS = {"ours": "the course's kernels", "torch": "PyTorch's norm", "typed": "typed op by op"}
_LOOKS = {"ours": "ours", "torch": "torch", "typed": "tutorial"}


def seen(table: Mapping[str, Mapping[str, bool]]) -> Figure:
    """A grid: a row for each bug, a column for each test, "sees it" or nothing.

    Args:
        table: for each bug in words, for each test in words, whether the test fails on it.
    """
    bugs, tests = list(table), list(next(iter(table.values())))
    left, top, wide, high = 2.35, 1.05, (style.WIDTH - 2.5) / len(tests), 0.42
    figure, axes = style.drawing(style.WIDTH, top + high * len(bugs) + 0.2)
    complete = [test for test in tests if all(row[test] for row in table.values())]
    style.write(
        axes, 0.15, 0.28, f"{complete[0]} sees every bug" if complete else "No test sees every bug", font=12, bold=True
    )
    for column, test in enumerate(tests):
        style.write(axes, left + wide * (column + 0.5), top - 0.22, test, ha="center", bold=True)
    for line, bug in enumerate(bugs):
        y = top + high * line
        style.write(axes, left - 0.12, y + high / 2, bug, ha="right")
        for column, test in enumerate(tests):
            caught = table[bug][test]
            style.cell(
                axes,
                (left + wide * column, y),
                (wide - 0.06, high - 0.06),
                "sees it" if caught else "passes",
                "done" if caught else "waiting",
            )
    return figure


def training_speed(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Tokens a second, a bar for each norm and provider, eager and compiled.

    Args:
        rows: measurements with ``norm``, ``provider``, ``compiled`` and ``tokens_per_s``.
        source: the device and the date, which stand on the figure.
    """
    order = sorted(rows, key=lambda row: (row["compiled"], row["norm"], list(PROVIDERS).index(row["provider"])))
    figure = Figure(figsize=(style.WIDTH, 1.3 + 0.36 * len(order)))
    axes = figure.add_subplot()
    highest = max(row["tokens_per_s"] for row in order)
    for line, row in enumerate(order):
        speed = row["tokens_per_s"]
        axes.barh(line, speed / 1e3, 0.7, **style.fill(_LOOKS[row["provider"]]))
        axes.annotate(f"{speed / 1e3:,.0f}", (speed / 1e3, line), (4, 0), textcoords="offset points", va="center")
    names = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
    axes.set_yticks(range(len(order)), [
        f"{'compiled' if row['compiled'] else 'eager'}, {names[row['norm']]}: {PROVIDERS[row['provider']]}" for row in order
    ])  # fmt: skip
    axes.set(
        ylim=(len(order) - 0.4, -0.6), xlim=(0, 1.12 * highest / 1e3), xlabel=f"thousand tokens a second\n{source}"
    )
    figure.suptitle("Training speed of the small transformer, by norm", fontsize=12, weight="bold", x=0.01, ha="left")
    axes.grid(axis="y", visible=False)
    return figure
