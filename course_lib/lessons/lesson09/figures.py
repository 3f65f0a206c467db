"""The figure of lesson 09: the cost of a fused addition."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.norm_times import NormTimes
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, View, chart

PROVIDERS = {
    "unfused": (N_("two kernels: add, then norm"), "torch"),
    "resident": (N_("one kernel"), "resident"),
}  # the addition of the two is PyTorch's


def show_fused_cost(times: NormTimes) -> MovingPicture:
    """Show the time of add + rms_norm in one kernel and in two, over that of a sweep that moves 4 M
    N elements, which is what one kernel moves.

    Args:
        times: has "add_rms_norm" of both providers.
    """
    rows = [row for row in times.measured.rows if row["op"] == "add_rms_norm"]
    ratios = [
        times.us("add_rms_norm", "unfused", N) / times.us("add_rms_norm", "resident", N)
        for N in times.columns
    ]
    lines = [
        make_line(rows, provider, _(name), colour) for provider, (name, colour) in PROVIDERS.items()
    ]
    ends = [value for line in lines for value in line.y]
    y = Axis(_("time over a sweep of 4 M N elements"), low=min(0.9, *ends), high=max(1.3, *ends))
    levels = (Level(1.0, _("4 M N elements moved")), Level(1.25, _("5 M N elements moved")))
    plot = Plot(make_length_axis(rows, " (fp16)"), y, lines, levels)
    title = _(
        "Add + RMSNorm in two kernels takes {least:.2f} to {most:.2f} times as long as in one"
    )
    caption = _("The axis begins at {low:.1f}. {source}.").format(low=y.low, source=times.label)
    ratios_text = _(", ").join(
        _("{ratio:.2f} at {N} columns").format(ratio=ratio, N=N)
        for N, ratio in zip(times.columns, ratios, strict=True)
    )
    return chart(
        View(title.format(least=min(ratios), most=max(ratios)), [plot], caption),
        alt=_(
            "Lines near 1 for one kernel and near 1.2 for two, by row length. Two kernels over one:"
            " {told}."
        ).format(told=ratios_text),
    )
