"""The picture of ``course bench --rows``: the stored times of the same norm by row length, with the
asked one marked."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.bench import forward
from course_lib.lessons.figures.measured import make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, View, chart
from course_lib.tuning import shape

_TICKS = (1, 16, 256, 4096, 65536)


def times_by_length(report: shape.ShapeReport) -> MovingPicture:
    """Show the time over the floor of the course's kernels and of PyTorch, for aligned rows of 2^25
    elements or more.

    Raises: CourseError if nothing is stored.
    """
    stored = shape.read_times(report.device, report.dtype)
    wide = [
        row
        for row in stored
        if row["dtype"] == report.dtype
        and row["N"] % 8 == 0
        and row["M"] * row["N"] >= forward.ELEMENTS
    ]
    plots = []
    for name, norm_pass in zip((_("forward"), _("backward")), report.passes, strict=True):
        rows = [row for row in wide if row["op"] == norm_pass.op]
        lines = [
            make_line(rows, "ours", _("the course's"), "ours"),
            make_line(rows, "torch", _("PyTorch's"), "torch"),
        ]
        ends = [report.N, *(row["N"] for row in rows)]
        x = Axis(
            _("columns N"),
            log=True,
            low=min(ends),
            high=max(*ends, min(ends) + 1),
            ticks=[N for N in _TICKS if min(ends) <= N <= max(ends)],
        )
        levels = [Level(1.0, _("the floor")), Level(report.N, f"N = {report.N}", axis="x")]
        plots.append(Plot(x, Axis(_("time over the floor"), unit="x"), lines, levels, title=name))
    source = _(", ").join(
        sorted(
            {
                _("{device}, measured {date}").format(device=row["device"], date=row["date"])
                for row in wide
            }
        )
    )
    title = _("{norm} in {dtype}: stored times over the floor").format(
        norm=shape.NORMS[report.norm], dtype=report.dtype
    )
    return chart(
        View(
            title,
            plots,
            _("M N = 2^25 or more, N a multiple of 8. {source}.").format(source=source),
        ),
        alt=_("{title}, forward and backward, by row length; N = {N} is marked.").format(
            title=title, N=report.N
        ),
    )
