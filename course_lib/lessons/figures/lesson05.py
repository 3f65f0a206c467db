"""The figure of lesson 05: the cost of a second read of a row, and the cost of Welford's arithmetic."""

from __future__ import annotations

from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.bench.row_statistics import KIND
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, View, chart

STREAMED = {"two_pass": "two-pass", "welford": "Welford", "shifted": "shifted one-pass"}
IN_ONE_BLOCK = {"resident": "two passes in registers", "resident_welford": "Welford", "torch": "torch.var_mean"}
_COLOURS = {"resident_welford": "welford"}


def read_stored_cost(dtype: str = "fp32") -> dict[tuple[str, int], float]:
    """Return the time over that of one read of x, by (provider, columns), from the newest stored measurement."""
    return {(row["provider"], row["N"]): row["over_floor"] for row in measurement.stored(KIND).rows if row["dtype"] == dtype}


def show_stored_cost() -> MovingPicture:
    """Show the newest stored measurement."""
    return sweep_cost(measurement.stored(KIND))


def sweep_cost(measured: Measurement) -> MovingPicture:
    """Show the time of each kernel over that of one read of x, by row length, for streamed rows in fp32 and fp16 and for rows in one block.

    Args:
        measured: has rows with ``provider``, ``dtype``, ``N`` and ``over_floor``.
    """

    def make_view(name: str, dtype: str, kernels: dict[str, str], title: str) -> View:
        rows = [row for row in measured.rows if row["dtype"] == dtype and row["provider"] in kernels]
        ends = {(row["provider"], row["N"]): f"{row['over_floor']:.2f}" for row in rows}
        lengths = sorted({N for _, N in ends})
        lines = [make_line(rows, key, words, _COLOURS.get(key, key)) for key, words in kernels.items()]
        levels = (Level(1.0, "x read once"), Level(2.0, "x read twice"))
        plot = Plot(make_length_axis(rows), Axis("time over one read of x", low=0.0, unit=" reads"), lines, levels)
        said = title.format(
            short=lengths[0],
            long=lengths[-1],
            **{f"{key}_{at}": ends.get((key, N), "") for key, _ in ends for at, N in (("short", lengths[0]), ("long", lengths[-1]))},
        )
        return View(said, [plot], f"{dtype}; {measured.label()}.", name)

    streamed = "Two sweeps cost {two_pass_long} reads of x at {long} columns; Welford costs {welford_short} at {short}"
    views = (
        make_view("streamed, fp32", "fp32", STREAMED, streamed),
        make_view("streamed, fp16", "fp16", STREAMED, streamed),
        make_view(
            "one block, fp32",
            "fp32",
            IN_ONE_BLOCK,
            "In registers two passes cost {resident_short} of a read, Welford {resident_welford_short}",
        ),
    )
    return chart(*views, control="rows", alt="Time of the statistics kernels over the time in which x is read once, by row length.")
