"""The figures of lesson 15: the tutorial's published curves, the same benchmark on this machine,
and the counters of three kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import course_lib
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.bench import backward, measurement
from course_lib.bench.published import EDITIONS, read_published
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import (
    Axis,
    Bar,
    Bars,
    Level,
    Plot,
    Series,
    View,
    chart,
)

# row lengths of the stored backward passes that the tutorial's range contains
LENGTHS = (1024, 2048, 4096, 8192, 16384)
DEVICE_TIMES = {
    "ours": N_("the course's"),
    "torch": "PyTorch",
    "locked": N_("the tutorial's design, mended"),
}
_COLOURS = {"ours": "ours", "torch": "torch", "locked": "tutorial"}
# the kernels of show_counters: operation and columns in the stored counters, with 8192 rows
_COUNTED = {
    "RMSNorm": ("rms_norm", 4096),
    N_("LayerNorm, N = 4095"): ("layer_norm", 4095),
    N_("LayerNorm backward"): ("layer_norm_backward", 4096),
}
_UNITS = {
    N_("DRAM throughput"): "dram_percent",
    N_("L1 data pipe"): "lsu_percent",
    N_("issue slots busy"): "issue_percent",
}
_WAITS = {
    "long_scoreboard": N_("long scoreboard: a load from memory"),
    "short_scoreboard": N_("short scoreboard: shared memory"),
    "barrier": N_("barrier: the other warps of the program"),
    "wait": N_("wait: the instruction before"),
}
# percent of the peak bandwidth from which on the title says that memory sets the time
_MOST_USED = 75


def show_published() -> MovingPicture:
    """Show GB/s against the row length, as the tutorial's English edition prints them."""
    table = read_published()
    lines = [
        _make_line(
            _("the tutorial's kernels"), "tutorial", [(line.N, line.triton) for line in table]
        ),
        _make_line("PyTorch", "torch", [(line.N, line.torch) for line in table]),
    ]
    first_line = table[0]
    highest = max(table, key=lambda line: (line.N <= 8192, line.triton))
    last_line = table[-1]
    source = _("Triton's tutorial, English edition; its GPU is not named")
    return chart(
        View(
            _("As published: the tutorial's kernels climb, PyTorch does not"),
            [Plot(_make_length_axis(), _make_gbps_axis(), lines)],
            _("M = 4096. {source}.").format(source=source),
        ),
        alt=_(
            "GB/s of a LayerNorm backward pass by row length. The tutorial's kernels climb from"
            " {first} at N = {first_N} to {highest} at {highest_N}, drop, and climb to {last} at"
            " {last_N}. PyTorch stays at 372 to 542. {source}."
        ).format(
            first=f"{first_line.triton:g}",
            first_N=first_line.N,
            highest=f"{highest.triton:g}",
            highest_N=highest.N,
            last=f"{last_line.triton:g}",
            last_N=last_line.N,
            source=source,
        ),
    )


def show_published_times() -> MovingPicture:
    """Show the tutorial's table of one edition or the other, as microseconds per call."""

    def make_view(edition: str) -> View:
        table = read_published(edition)
        lines = [
            _make_line(name, colour, [(line.N, line.us(provider)) for line in table])
            for provider, colour, name in (
                ("triton", "tutorial", _("the tutorial's kernels")),
                ("torch", "torch", "PyTorch"),
            )
        ]
        y = Axis(_("microseconds per call, from the published GB/s"), high=850, unit=" \u00b5s")
        plot = Plot(_make_length_axis(), y, lines, [Level(8192, "N = 8192", "x")])
        caption = _("M = 4096. Triton's tutorial, {edition} edition; its GPU is not named.").format(
            edition=_(edition)
        )
        return View(
            _("Up to N = 8192 a call takes the same time, whatever N is"),
            [plot],
            caption,
            _(edition),
        )

    flat = [line.us("triton") for line in read_published() if line.N <= 8192]
    return chart(
        *map(make_view, EDITIONS), control=_("edition"),
        alt=_(
            "Microseconds per call by row length. The tutorial's kernels take {least:.0f} to "
            "{most:.0f} at every N up to 8192 in the "
            "English edition, and are as level in the Chinese one; then the time rises. PyTorch's "
            "time rises with N from the start."
        ).format(least=min(flat), most=max(flat)),
    )  # fmt: skip


def show_benchmark(benchmark: Any) -> MovingPicture:
    """Run a benchmark and show its result; without a GPU, show the stored device times on the same
    axes.

    Args:
        benchmark: made with ``triton.testing.perf_report``. It has one ``triton.testing.Benchmark``
            whose lines are "ours" and "torch" and whose values are GB/s.
    """
    lines = [
        _make_line(
            _("published, M = 4096"),
            "quiet",
            [(line.N, line.triton) for line in read_published()],
            "2 4",
        )
    ]
    if course_lib.MODE == "gpu":
        frame = benchmark.run(return_df=True)
        for provider, column in zip(benchmark.benchmarks.line_vals, frame.columns[1:], strict=True):
            points = [
                (int(N), float(gbps))
                for N, gbps in zip(frame.iloc[:, 0], frame[column], strict=True)
            ]
            lines.append(_make_line(_(DEVICE_TIMES[provider]), _COLOURS[provider], points))
        source = _("Measured now, with Python's share; dotted: the tutorial's table")
        title = _("The same benchmark on your GPU")
    else:
        stored, points = measurement.stored(backward.KIND), list_device_gbps()
        lines += [
            _make_line(_(name), _COLOURS[provider], points[provider])
            for provider, name in DEVICE_TIMES.items()
        ]
        our_gbps = [gbps for N, gbps in points["ours"] if N <= 8192]
        source = _("{source}, M N = 2^25; dotted: the tutorial's table").format(
            source=stored.label()
        )
        title = _("Without Python's share: level, {least} to {most} GB/s up to N = 8192").format(
            least=min(our_gbps), most=max(our_gbps)
        )
    alt = _("GB/s of a LayerNorm backward pass by row length. {source}.").format(source=source)
    plot = Plot(_make_length_axis(), _make_gbps_axis(), lines)
    return chart(View(title, [plot], _("{told}.").format(told=source)), alt=alt)


def show_counters() -> MovingPicture:
    """Show the stored counters of three kernels, one view each: how busy units and places for warps
    are, and for what warps wait."""
    stored = measurement.stored("counters")
    texts = []
    rows = {
        name: next(row for row in stored.rows if (row["op"], row["M"], row["N"]) == (op, 8192, N))
        for name, (op, N) in _COUNTED.items()
    }
    longest = max(max(row["stalls"].values()) for row in rows.values())

    def make_view(name: str) -> View:
        row = rows[name]
        memory, waits = row["dram_percent"], list(row["stalls"].items())[:3]
        units = [
            Bar(
                _(words),
                [(row[key], "ours" if key == "dram_percent" else "masked")],
                f"{row[key]:.1f} %",
            )
            for words, key in _UNITS.items()
        ]
        places = Bar(
            _("achieved occupancy"),
            [(row["occupancy_percent"], "masked")],
            f"{row['occupancy_percent']:.1f} %",
        )
        stalls = [
            Bar(
                _(_WAITS[reason]),
                [(warps, "ours" if reason == "long_scoreboard" else "masked")],
                f"{warps:g}",
            )
            for reason, warps in waits
        ]
        if memory >= _MOST_USED:
            title = _(
                "The memory is {memory:.0f} % busy: only fewer bytes would make this kernel much"
                " faster"
            )
        else:
            title = _(
                "The memory is {memory:.0f} % busy, and no unit is at its limit: there is time to"
                " gain"
            )
        facts = _(
            "{us:.0f} \u00b5s; {registers:.0f} registers per thread; {read_mb:.0f} MB read from"
            " memory and {written_mb:.0f} MB written"
        ).format(**row)
        read, wait = (
            _(", ").join(f"{bar.name} {bar.words}" for bar in bars)
            for bars in ((*units, places), stalls)
        )
        texts.append(
            _("{name}: {facts}; {read}; warps wait, {wait}.").format(
                name=_(name), facts=facts, read=read, wait=wait
            )
        )
        return View(
            title.format(memory=memory),
            [
                Bars(
                    [(_("Units"), units), (_("Places for warps"), [places])],
                    _("% of the most that there can be"),
                    high=100,
                ),
                Bars(
                    [(_("Why warps wait"), stalls)],
                    _("warps that wait, whenever an instruction is issued"),
                    high=longest,
                ),
            ],
            _("8192 x {N}, fp16: {facts}. Nsight Compute, the kernel alone. {source}.").format(
                N=row["N"], facts=facts, source=stored.label()
            ),
            _(name),
        )

    views = [make_view(name) for name in rows]
    return chart(
        *views,
        alt=_("Bars of hardware counters. {told}").format(told=join_sentences(*texts)),
        control=_("kernel"),
    )


def list_device_gbps() -> dict[str, list[tuple[int, int]]]:
    """Return N and GB/s of the stored LayerNorm backward passes, by provider."""
    rows = [
        row for row in measurement.stored(backward.KIND).rows if row["op"] == "layer_norm_backward"
    ]
    return {
        provider: sorted(
            (row["N"], row["gbps"])
            for row in rows
            if row["provider"] == provider and row["N"] in LENGTHS
        )
        for provider in DEVICE_TIMES
    }


def _make_length_axis() -> Axis:
    return Axis(_("columns N (fp16)"), low=0, high=16800, ticks=range(0, 16385, 2048))


def _make_gbps_axis() -> Axis:
    return Axis(_("GB/s, counted as 3 M N numbers"), unit=" GB/s")


def _make_line(
    name: str, colour: str, points: Sequence[tuple[int, float]], dash: str = ""
) -> Series:
    return Series(
        name,
        [point[0] for point in points],
        [point[1] for point in points],
        colour,
        dots=not dash,
        dash=dash,
    )
