"""The figure of lesson 16: the cost of long rows in each design."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench.measurement import Measurement
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Bar, Bars, View, chart

_NAMES = {
    "torch": ("torch", "PyTorch"),
    "blocked": ("blocked", N_("one program per row")),
    "few_rows": ("resident", N_("two launches")),
    "split": ("ours", N_("one launch, words")),
}


def show_long_rows(measured: Measurement) -> MovingPicture:
    """Show LayerNorm's time over the floor: a group of bars per shape, one bar per provider of
    ``measured``. Alt text has the numbers."""
    groups: dict[str, list[Bar]] = {f"{row['M']} x {row['N']}": [] for row in measured.rows}
    for row in sorted(measured.rows, key=lambda row: list(_NAMES).index(row["provider"])):
        colour, name = _NAMES[row["provider"]]
        value = row["over_floor"]
        groups[f"{row['M']} x {row['N']}"].append(
            Bar(_(name), [(value, colour)], f"{value:.{0 if value >= 20 else 1}f}")
        )
    unit = _("time over the floor (fp16), on a logarithmic scale that begins at the floor")
    times_text = _("; ").join(
        _("{M} x {N}, {name}: {value:.2g}").format(
            M=row["M"], N=row["N"], name=_(_NAMES[row["provider"]][1]), value=row["over_floor"]
        )
        for row in measured.rows
    )
    return chart(
        View(
            _title(measured),
            [Bars(list(groups.items()), unit, log=True, level=(1.0, _("the floor")))],
            _("{told}.").format(told=measured.label()),
        ),
        alt=_("Time of LayerNorm forward over the floor, {source}. {told}.").format(
            source=measured.label(), told=times_text
        ),
    )


def _title(measured: Measurement) -> str:
    """Write the title with the numbers of ``measured``, so that it is true for any measurement."""
    worst = {
        name: max(
            (row["over_floor"] for row in measured.rows if row["provider"] == name), default=0.0
        )
        for name in _NAMES
    }
    if worst["split"]:
        return _("A row shared by programs takes {most:.1f} times the floor at most").format(
            most=max(worst["split"], worst["few_rows"])
        )
    return _("One program per row and few rows: up to {most:.0f} times the floor").format(
        most=worst["torch"]
    )
