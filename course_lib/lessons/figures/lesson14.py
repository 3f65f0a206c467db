"""The figures of lesson 14: the parts of a norm, the bugs that each test sees, and the training speed with each norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.lessons import style
from course_lib.lessons.own_kernels import NormPart

PROVIDERS = {"ours": "the course's kernels", "torch": "PyTorch's norm", "typed": "typed op by op"}
_LOOKS = {"ours": "ours", "torch": "torch", "typed": "tutorial"}


def draw_parts(parts: Sequence[NormPart]) -> Figure:
    """Draw the data flow through the four parts of a norm, forward and backward, and mark the parts that are the learner's."""
    own = {part.exercise: part.own for part in parts}
    figure, axes = style.drawing(style.WIDTH, 2.75)
    count = sum(own.values())
    style.write(axes, 0.15, 0.28, f"A norm of four parts: {count} of them yours" if count else "A norm of four parts", font=12, bold=True)

    def box(x: float, y: float, width: float, height: float, exercise: str, role: str) -> None:
        state = "done" if own[exercise] else "waiting"
        whose = f"yours, {exercise}" if own[exercise] else "the course's"
        style.cell(axes, (x, y), (width, height), "", state)
        style.write(axes, x + width / 2, y + 0.2, role, on=style.COLOURS[state], ha="center", bold=True)
        style.write(axes, x + width / 2, y + 0.42, whose, on=style.COLOURS[state], ha="center")

    def arrow(start: float, end: float, y: float, words: str) -> None:
        axes.annotate("", (end, y), (start, y), arrowprops={"arrowstyle": "->", "color": style.INK})
        style.write(axes, (start + end) / 2, y - 0.14, words, ha="center")

    # encloses the other boxes, because all data goes in and out through the wiring
    box(1.4, 0.55, 4.7, 2.1, "14a", "wiring")
    box(3.0, 1.12, 1.5, 0.6, "08a", "forward")
    box(2.1, 1.92, 1.5, 0.6, "11a", "dx")
    box(3.9, 1.92, 1.5, 0.6, "13b", "dw and db")
    arrow(0.2, 1.35, 1.42, "x, w, b")
    arrow(6.15, 7.3, 1.42, "y")
    arrow(7.3, 6.15, 2.22, "dy")
    arrow(1.35, 0.2, 2.22, "dx, dw, db")
    return figure


def describe_parts(parts: Sequence[NormPart]) -> str:
    """Write the alt text of :func:`draw_parts`."""
    whose = "; ".join(
        f"{part.role}: {f'yours, {part.exercise}' if part.own else f'the course’s, because {part.why}'}".rstrip(".") for part in parts
    )
    return f"The parts of the norm. {whose}."


def seen(table: Mapping[str, Mapping[str, bool]]) -> Figure:
    """Draw a grid with a row per bug and a column per test; a cell says "sees it" or is empty.

    Args:
        table: for each bug and each test, both in words, whether the test fails on the bug.
    """
    bugs, tests = list(table), list(next(iter(table.values())))
    left, top, wide, high = 2.35, 1.05, (style.WIDTH - 2.5) / len(tests), 0.42
    figure, axes = style.drawing(style.WIDTH, top + high * len(bugs) + 0.2)
    complete = [test for test in tests if all(row[test] for row in table.values())]
    style.write(axes, 0.15, 0.28, f"{complete[0]} sees every bug" if complete else "No test sees every bug", font=12, bold=True)
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
    """Draw tokens per second: a bar for each norm and provider, eager and compiled.

    Args:
        rows: measurements with ``norm``, ``provider``, ``compiled`` and ``tokens_per_s``.
        source: the device and the date, written on the figure.
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
    axes.set_yticks(
        range(len(order)),
        [f"{'compiled' if row['compiled'] else 'eager'}, {names[row['norm']]}: {PROVIDERS[row['provider']]}" for row in order],
    )
    axes.set(ylim=(len(order) - 0.4, -0.6), xlim=(0, 1.12 * highest / 1e3), xlabel=f"thousand tokens a second\n{source}")
    figure.suptitle("Training speed of the small transformer, by norm", fontsize=12, weight="bold", x=0.01, ha="left")
    axes.grid(axis="y", visible=False)
    return figure


def describe_seen(table: Mapping[str, Mapping[str, bool]]) -> str:
    """Write the alt text of :func:`seen`."""
    told = " ".join(f"{bug}: seen by {', '.join(t for t, sees in row.items() if sees)}." for bug, row in table.items())
    return f"A grid of {len(table)} bugs and the tests that see them. {told}"


def describe_speed(measured: Measurement) -> str:
    """Write the alt text of :func:`training_speed`."""
    told = ", ".join(
        f"{row['norm']} {PROVIDERS[row['provider']]} {'compiled' if row['compiled'] else 'eager'} {row['tokens_per_s'] / 1e3:,.0f}"
        for row in measured.rows
    )
    size = measured.rows[0]
    words = (
        f"Thousand tokens a second of the whole training, {size['layers']} layers, norms over {size['M']} x {size['N']}, {size['dtype']}"
    )
    return f"Bars. {words}: {told}."


@dataclass(frozen=True)
class Costs:
    """Microseconds of LayerNorm forward and backward together, in fp16: ``host`` for a call of any size, ``gpu`` for M x N."""

    M: int
    N: int
    host_ours: int
    host_torch: int
    gpu_ours: int
    gpu_torch: int

    @property
    def turning_rows(self) -> float:
        """Return the number of rows of N columns from which the course's kernels save more GPU time than they lose on the host.

        GPU time is taken to grow in proportion to the rows.
        """
        return self.M * (self.host_ours - self.host_torch) / (self.gpu_torch - self.gpu_ours)


def compare_costs(M: int = 32768, N: int = 1024) -> Costs:
    """Return the stored times of single calls of the course's functions and of PyTorch's.

    Raises: CourseError if nothing is stored.
    """
    stored = {kind: measurement.stored(kind).rows for kind in ("host", "forward", "backward")}

    def find(kind: str, op: str, provider: str, **wanted: Any) -> float:
        wanted |= {"op": op, "provider": provider, "dtype": "fp16"}
        return next(row["us"] for row in stored[kind] if wanted.items() <= row.items())

    host = {who: round(find("host", "layer_norm", who, passes="forward and backward")) for who in ("ours", "torch")}
    gpu = {
        who: round(find("forward", "layer_norm", who, M=M, N=N) + find("backward", "layer_norm_backward", who, M=M, N=N))
        for who in ("ours", "torch")
    }
    return Costs(M, N, host["ours"], host["torch"], gpu["ours"], gpu["torch"])
