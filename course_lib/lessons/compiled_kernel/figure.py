"""The explorer's figure: registers and spills over num_warps, and under each bar the rest of its report."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.lessons import style
from course_lib.lessons.compiled_kernel.model import Column, View, describe, title
from course_lib.lessons.live import Picture

_LEFT, _RIGHT = 1.75, 0.2
_TOP, _CHART, _LINE = 0.78, 1.55, 0.27
_MOST_REGISTERS = 255  # of a thread, on every architecture here


def draw(view: View) -> Picture:
    """One position a num_warps: a bar of registers, a hatched bar of spilled bytes, and a column of numbers."""
    rows = _rows(view)
    table = _TOP + _CHART + 0.42
    height = table + sum(row_height for _, _, row_height in rows) + 0.2
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(view), font=12, bold=True)
    step = (style.WIDTH - _LEFT - _RIGHT) / len(view.columns)
    chosen = next(i for i, column in enumerate(view.columns) if column is view.chosen)
    band = {"facecolor": style.COLOURS["active"], "alpha": 0.22, "linewidth": 0, "zorder": 0}
    axes.add_patch(Rectangle((_LEFT + chosen * step + 0.03, 0.48), step - 0.06, height - 0.58, **band))
    frame = {"fill": False, "linewidth": 1.6, "edgecolor": style.INK, "zorder": 1}
    axes.add_patch(Rectangle((_LEFT + chosen * step + 0.03, 0.48), step - 0.06, height - 0.58, **frame))
    _chart(axes, view, step)
    y = table
    for name, cells, row_height in rows:
        axes.plot(
            [0.2, style.WIDTH - _RIGHT],
            [y - 0.02, y - 0.02],
            color=style.GRID,
            linewidth=0.8,
            linestyle="-",
            marker="",
            zorder=0.5,
        )
        style.write(axes, _LEFT - 0.12, y + row_height / 2, name, ha="right")
        for i, cell in enumerate(cells):
            lines = cell.split("\n")
            for k, text in enumerate(lines):
                at = y + row_height / 2 + (k - (len(lines) - 1) / 2) * 0.19
                style.write(axes, _LEFT + (i + 0.5) * step, at, text, ha="center", bold=i == chosen)
        y += row_height
    words = describe(view)
    alt = f"{title(view)}. For 1 to 32 warps a bar of registers a thread, a hatched bar of spilled bytes, and the numbers: {_describe_columns(view)}. {words}"
    return Picture(style.png(figure, alt), alt, words)


def _chart(axes: Axes, view: View, step: float) -> None:
    base = _TOP + _CHART
    spilled = max((column.report.spill_bytes for column in view.columns if column.report), default=0)
    bar = 0.3
    limit = base - _CHART * 0.86
    axes.plot(
        [_LEFT, style.WIDTH - _RIGHT], [limit, limit], color=style.QUIET, linestyle="--", linewidth=1.0, marker=""
    )
    style.write(axes, _LEFT - 0.12, limit, "255, the most", ha="right", colour=style.QUIET)
    style.write(axes, _LEFT - 0.12, base - 0.78, "plain bar:", ha="right")
    style.write(axes, _LEFT - 0.12, base - 0.59, "registers a thread", ha="right")
    style.write(axes, _LEFT - 0.12, base - 0.33, "hatched, own scale:", ha="right")
    style.write(axes, _LEFT - 0.12, base - 0.14, "bytes spilled", ha="right")
    axes.plot([_LEFT, style.WIDTH - _RIGHT], [base, base], color=style.QUIET, linestyle="-", linewidth=1.0, marker="")
    for i, column in enumerate(view.columns):
        middle = _LEFT + (i + 0.5) * step
        style.write(
            axes, middle, base + 0.17, f"{column.num_warps} {'warp' if column.num_warps == 1 else 'warps'}", ha="center"
        )
        if column.report is None:
            style.write(
                axes, middle, base - 0.3, "refused" if column.refused else "...", ha="center", colour=style.QUIET
            )
            continue
        for at, value, most, key in (
            (middle - bar - 0.03, column.report.registers, _MOST_REGISTERS, "x"),
            (middle + 0.03, column.report.spill_bytes, spilled, "fault"),
        ):
            tall = _CHART * 0.86 * value / most if most else 0.0
            if value:
                look: dict[str, Any] = {
                    "facecolor": style.COLOURS[key],
                    "edgecolor": style.INK,
                    "linewidth": 0.8,
                    "zorder": 2,
                }
                if key == "fault":
                    look |= {"hatch": style.HATCHES["fault"], "hatchcolor": "#8A4A1F"}
                axes.add_patch(Rectangle((at, base - tall), bar, tall, **look))
            style.write(axes, at + bar / 2, base - tall - 0.1, str(value), ha="center", halo=True)


def _rows(view: View) -> list[tuple[str, list[str], float]]:
    """Name, one cell a column, and height, of each row of the table."""
    loads = [_widths(column, "loads") for column in view.columns]
    stores = [_widths(column, "stores") for column in view.columns]
    limits = [_limit(column) for column in view.columns]
    return [
        ("shared bytes", [_cell(column, lambda c: str(c.report.shared_bytes)) for column in view.columns], _LINE),
        ("loads, bits", loads, _measure_height(loads)),
        ("stores, bits", stores, _measure_height(stores)),
        (
            "resident warps",
            [_cell(column, lambda c: f"{c.residency.warps} of {c.residency.most}") for column in view.columns],
            _LINE,
        ),
        ("limited by", limits, _measure_height(limits)),
    ]


def _measure_height(cells: list[str]) -> float:
    return _LINE + 0.19 * max(cell.count("\n") for cell in cells)


def _cell(column: Column, text) -> str:
    return text(column) if column.report is not None else "-" if column.refused else "..."


def _widths(column: Column, name: str) -> str:
    """One line a width: how many instructions, times how many bits."""
    counts = getattr(column.report, name) if column.report else None
    if counts is None:
        return _cell(column, lambda c: "-")
    return "\n".join(f"{count} × {8 * width}" for width, count in counts.items()) or "none"


def _limit(column: Column) -> str:
    def names(column: Column) -> str:
        limited_by = column.residency.limited_by if column.residency else ()
        return "\n".join("shared mem." if name == "shared memory" else name for name in limited_by) or "nothing"

    return _cell(column, names)


def _describe_columns(view: View) -> str:
    parts = []
    for column in view.columns:
        if column.report is not None:
            parts.append(
                f"{column.num_warps}: {column.report.registers} registers, {column.report.spill_bytes} bytes spilled"
            )
        else:
            parts.append(f"{column.num_warps}: {'refused' if column.refused else 'not compiled yet'}")
    return "; ".join(parts)
