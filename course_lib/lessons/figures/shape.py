"""The picture of ``course bench --rows``: the stored times of the same norm by row length, with the asked one marked."""

from __future__ import annotations

from course_lib.bench import forward
from course_lib.lessons.figures.measured import make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, View, chart
from course_lib.tuning import shape

_TICKS = (1, 16, 256, 4096, 65536)


def times_by_length(report: shape.ShapeReport) -> MovingPicture:
    """Show the time over the floor of the course's kernels and of PyTorch, for aligned rows of 2^25 elements or more.

    Raises: CourseError if nothing is stored.
    """
    stored = shape.read_times(report.device, report.dtype)
    wide = [row for row in stored if row["dtype"] == report.dtype and row["N"] % 8 == 0 and row["M"] * row["N"] >= forward.ELEMENTS]
    plots = []
    for name, one in zip(("forward", "backward"), report.passes, strict=True):
        rows = [row for row in wide if row["op"] == one.op]
        lines = [make_line(rows, "ours", "the course's", "ours"), make_line(rows, "torch", "PyTorch's", "torch")]
        ends = [report.N, *(row["N"] for row in rows)]
        x = Axis(
            "columns N", log=True, low=min(ends), high=max(*ends, min(ends) + 1), ticks=[N for N in _TICKS if min(ends) <= N <= max(ends)]
        )
        levels = [Level(1.0, "the floor"), Level(report.N, f"N = {report.N}", axis="x")]
        plots.append(Plot(x, Axis("time over the floor", unit="x"), lines, levels, title=name))
    source = ", ".join(sorted({f"{row['device']}, measured {row['date']}" for row in wide}))
    title = f"{shape.NORMS[report.norm]} in {report.dtype}: stored times over the floor"
    return chart(
        View(title, plots, f"M N = 2^25 or more, N a multiple of 8. {source}."),
        alt=f"{title}, forward and backward, by row length; N = {report.N} is marked.",
    )
