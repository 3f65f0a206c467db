"""The figure of lesson 09: the cost of a fused addition."""

from __future__ import annotations

from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.norm_times import NormTimes
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, View, chart

PROVIDERS = {
    "unfused": ("two kernels: add, then norm", "torch"),
    "resident": ("one kernel", "resident"),
}  # the addition of the two is PyTorch's


def show_fused_cost(times: NormTimes) -> MovingPicture:
    """Show the time of add + rms_norm in one kernel and in two, over that of a pass that moves 4 M N elements, which is what one kernel moves.

    Args:
        times: has "add_rms_norm" of both providers.
    """
    rows = [row for row in times.measured.rows if row["op"] == "add_rms_norm"]
    ratios = [times.us("add_rms_norm", "unfused", N) / times.us("add_rms_norm", "resident", N) for N in times.columns]
    lines = [make_line(rows, provider, *look) for provider, look in PROVIDERS.items()]
    ends = [value for line in lines for value in line.y]
    y = Axis("time over a pass of 4 M N elements", low=min(0.9, *ends), high=max(1.3, *ends))
    levels = (Level(1.0, "4 M N elements moved"), Level(1.25, "5 M N elements moved"))
    plot = Plot(make_length_axis(rows, " (fp16)"), y, lines, levels)
    title = f"Add + RMSNorm in two kernels takes {min(ratios):.2f} to {max(ratios):.2f} times as long as in one"
    caption = f"The axis begins at {y.low:.1f}. {times.label}."
    told = ", ".join(f"{ratio:.2f} at {N} columns" for N, ratio in zip(times.columns, ratios, strict=True))
    return chart(
        View(title, [plot], caption), alt=f"Lines near 1 for one kernel and near 1.2 for two, by row length. Two kernels over one: {told}."
    )
