"""The figure of lesson 08: the cost of one read of a row, and of three."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench import forward
from course_lib.bench.measurement import Measurement
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, Series, View, chart

PROVIDERS = {
    "blocked": N_("blocked (asks for 3 reads)"),
    "resident": N_("resident (1 read)"),
    "torch": "PyTorch",
}


def list_costs(measured: Measurement) -> list[dict[str, Any]]:
    """Select the times of LayerNorm forward in fp16: rows with provider, M, N, us and
    over_floor."""
    norm_rows = [
        row for row in measured.rows if (row["op"], row["dtype"]) == ("layer_norm", "fp16")
    ]
    return [row for row in norm_rows if row["provider"] in PROVIDERS]


def show_forward_cost(
    measured: Measurement | None = None, dots: Sequence[Series] = (), note: str = ""
) -> MovingPicture:
    """Show the time of the blocked kernel, the resident kernel and PyTorch over that of a copy, by
    row length.

    Args:
        measured: the times; None takes those of this machine's GPU, else the stored ones.
        dots: more times, drawn over the lines.
        note: more words for the caption.
    """
    measured = measured or forward.latest()
    rows = list_costs(measured)
    lines = [make_line(rows, provider, _(words), provider) for provider, words in PROVIDERS.items()]
    plot = Plot(
        make_length_axis(rows, " (fp16)"),
        Axis(_("time over a copy"), low=0.0, unit=_(" copies")),
        [*(line for line in lines if line.x), *dots],
        [Level(1.0, _("a copy of the same bytes"))],
    )
    points = _("; ").join(
        _("{name}: {values}").format(
            name=f"N = {N}",
            values=_(", ").join(
                f"{_(PROVIDERS[row['provider']])} {row['over_floor']:.2f}"
                for row in rows
                if row["N"] == N
            ),
        )
        for N in sorted({row["N"] for row in rows})
    )
    middle = {
        name: median([row["over_floor"] for row in rows if row["provider"] == name])
        for name in ("blocked", "resident")
    }
    title = _(
        "Reading each row once costs {resident:.2f} copies, asking for it three times {blocked:.2f}"
        " copies (medians)"
    ).format(**middle)
    return chart(
        View(
            title, [plot], _("{source}. {note}").format(source=measured.label(), note=note).rstrip()
        ),
        alt=_(
            "Time of LayerNorm forward over that of a copy of the same bytes, {source}. {points}."
        ).format(source=measured.label(), points=points),
    )
