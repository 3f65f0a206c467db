"""The figure of lesson 05: the cost of a second read of a row, and the cost of Welford's
arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.bench.row_statistics import KIND
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, Series, View, chart

STREAMED = {
    "two_pass": N_("two-pass"),
    "welford": "Welford",
    "shifted": N_("shifted one-pass"),
    "one_pass": N_("one-pass"),
}
IN_ONE_BLOCK = {
    "resident": N_("two-pass in registers"),
    "resident_welford": "Welford",
    "torch": "torch.var_mean",
}
_COLOURS = {"resident_welford": "welford"}


def read_stored_cost(dtype: str = "fp32") -> dict[tuple[str, int], float]:
    """Return the time over that of one read of x, by (provider, columns), from the newest stored
    measurement."""
    return {
        (row["provider"], row["N"]): row["over_floor"]
        for row in measurement.stored(KIND).rows
        if row["dtype"] == dtype
    }


def show_stored_cost() -> MovingPicture:
    """Show the newest stored measurement."""
    return sweep_cost(measurement.stored(KIND))


def sweep_cost(measured: Measurement, dots: Sequence[Series] = (), note: str = "") -> MovingPicture:
    """Show the time of each kernel over that of one read of x, by row length, for streamed rows in
    fp32 and fp16 and for rows in one block.

    Args:
        measured: has rows with ``provider``, ``dtype``, ``N`` and ``over_floor``.
        dots: more times of streamed rows in fp32, drawn over the lines.
        note: more words for the caption.
    """
    cost = {(row["dtype"], row["provider"], row["N"]): row["over_floor"] for row in measured.rows}
    short, long = (pick(key[2] for key in cost) for pick in (min, max))

    def make_view(
        name: str, dtype: str, kernels: dict[str, str], title: str, more: Sequence[Series] = ()
    ) -> View:
        rows = [
            row for row in measured.rows if row["dtype"] == dtype and row["provider"] in kernels
        ]
        lines = [
            make_line(rows, key, _(words), _COLOURS.get(key, key)) for key, words in kernels.items()
        ]
        levels = (Level(1.0, _("x read once")), Level(2.0, _("x read twice")))
        plot = Plot(
            make_length_axis(rows),
            Axis(_("time over one read of x"), low=0.0, unit=_(" reads")),
            [*lines, *more],
            levels,
        )
        return View(
            title,
            [plot],
            _("{dtype}; {source}. {note}")
            .format(dtype=dtype, source=measured.label(), note=note)
            .rstrip(),
            name,
        )

    streamed = [
        make_view(
            _("streamed, {dtype}").format(dtype=dtype),
            dtype,
            STREAMED,
            _(
                "Two sweeps cost {sweeps:.2f} reads of x at {long} columns; Welford costs"
                " {welford:.2f} reads at {short}"
            ).format(
                sweeps=cost[dtype, "two_pass", long],
                long=long,
                welford=cost[dtype, "welford", short],
                short=short,
            ),
            dots if dtype == "fp32" else (),
        )
        for dtype in ("fp32", "fp16")
    ]
    registers = _(
        "In registers two-pass costs {resident:.2f} reads of x, Welford {welford:.2f} reads"
    )
    registers = registers.format(
        resident=cost["fp32", "resident", short], welford=cost["fp32", "resident_welford", short]
    )
    in_one_block = make_view(_("one block, fp32"), "fp32", IN_ONE_BLOCK, registers)
    costs_text = _("; ").join(
        _("{name} {at_short:.2f} at {short} columns and {at_long:.2f} at {long}").format(
            name=_(words),
            at_short=cost["fp32", key, short],
            short=short,
            at_long=cost["fp32", key, long],
            long=long,
        )
        for key, words in STREAMED.items()
    )
    alt = _(
        "Time of the statistics kernels over the time in which x is read once, by row length."
        " Streamed, in fp32: {told}."
    )
    return chart(*streamed, in_one_block, control=_("rows"), alt=alt.format(told=costs_text))
