"""The figures of lesson 15: the tutorial's published curves as GB/s and as time, and the same benchmark on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import course_lib
from course_lib.bench import backward, measurement
from course_lib.bench.published import EDITIONS, read_published
from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

_SOURCE = "Triton's tutorial, English edition; its GPU is not named"
# row lengths of the stored backward passes that the tutorial's range contains
LENGTHS = (1024, 2048, 4096, 8192, 16384)
DEVICE_TIMES = {"ours": "the course's", "torch": "PyTorch", "locked": "the tutorial's design, mended"}
_LOOKS = {"ours": "ours", "torch": "torch", "locked": "tutorial"}


def show_published() -> Picture:
    """Draw GB/s against the row length, as the tutorial's English edition prints them."""
    table = read_published()
    figure, axes = _start("columns N (fp16, M = 4096)", "GB/s, counted as 3 M N numbers")
    _draw(axes, "tutorial", [(line.N, line.triton) for line in table], "the tutorial's kernels", linestyle="-")
    _draw(axes, "torch", [(line.N, line.torch) for line in table], "PyTorch", below=True, linestyle="-")
    axes.set(ylim=(0, 1100))
    axes.set_title("As published: the tutorial's kernels climb, PyTorch does not")
    _cite(axes, _SOURCE)
    first, highest, last = table[0], max(table, key=lambda line: (line.N <= 8192, line.triton)), table[-1]
    return picture(
        figure,
        f"GB/s of a LayerNorm backward pass by row length. The tutorial's kernels climb from {first.triton:g} at N = {first.N} to "
        f"{highest.triton:g} at {highest.N}, drop, and climb to {last.triton:g} at {last.N}. PyTorch stays at 372 to 542. {_SOURCE}.",
    )


def show_published_times() -> Picture:
    """Draw the tutorial's tables, of both editions, as microseconds per call."""
    figure, axes = _start("columns N (fp16, M = 4096)", "µs a call, from the published GB/s")
    for edition, look in zip(EDITIONS, ("-", ":"), strict=True):
        table, first = read_published(edition), edition == EDITIONS[0]
        for provider, key, name in (("triton", "tutorial", "the tutorial's kernels"), ("torch", "torch", "PyTorch")):
            points = [(line.N, line.us(provider)) for line in table]
            _draw(axes, key, points, name if first else "", below=key == "tutorial", linestyle=look)
    axes.axvline(8192, color=style.QUIET, linestyle=":", linewidth=1.0)
    axes.set(ylim=(0, 850))
    axes.set_title("Up to N = 8192 a call takes the same time, whatever N is")
    _cite(axes, "solid: English edition, dotted: Chinese edition; neither names its GPU")
    flat = [line.us("triton") for line in read_published() if line.N <= 8192]
    return picture(
        figure,
        f"Microseconds a call by row length. The tutorial's kernels take {min(flat):.0f} to {max(flat):.0f} at every N up to 8192 in the English "
        "edition, and are as level in the Chinese one; then the time rises. PyTorch's time rises with N from the start.",
    )


def show_benchmark(benchmark: Any) -> Picture:
    """Run a benchmark and draw its result; without a GPU, draw the stored device times on the same axes.

    Args:
        benchmark: made with ``triton.testing.perf_report``. It has one ``triton.testing.Benchmark`` whose lines are "ours" and "torch" and
            whose values are GB/s.
    """
    figure, axes = _start("columns N (fp16)", "GB/s, counted as 3 M N numbers")
    _draw(axes, "tutorial", [(line.N, line.triton) for line in read_published()], "published, M = 4096", below=True, linestyle=":")
    if course_lib.MODE == "gpu":
        frame = benchmark.run(return_df=True)
        names = dict(zip(benchmark.benchmarks.line_vals, frame.columns[1:], strict=True))
        for provider, column in names.items():
            _draw(axes, _LOOKS[provider], list(zip(frame.iloc[:, 0], frame[column], strict=True)), DEVICE_TIMES[provider])
        source, title = ("measured now, with Python's share; dotted: the tutorial's table", "The same benchmark on your GPU")
    else:
        stored = measurement.stored(backward.KIND)
        points = list_device_gbps()
        for provider, name in DEVICE_TIMES.items():
            _draw(axes, _LOOKS[provider], points[provider], "" if provider == "locked" else name, linestyle="-")
        # The label stands between its own line and PyTorch's, where there is no other line.
        between = (points["locked"][-2][1] + points["torch"][-2][1]) / 2
        axes.annotate(DEVICE_TIMES["locked"], (2300, between), va="center", color=style.INK)
        own = [gbps for N, gbps in points["ours"] if N <= 8192]
        source = f"{stored.label()}, M N = 2^25; dotted: the tutorial's table"
        title = f"Without Python's share: level, {min(own)} to {max(own)} GB/s up to N = 8192"
    axes.set_ylim(0, 3100)
    axes.set_title(title)
    _cite(axes, source)
    return picture(figure, f"{title}. GB/s of a LayerNorm backward pass by row length. {source}.")


def list_device_gbps() -> dict[str, list[tuple[int, int]]]:
    """Return N and GB/s of the stored LayerNorm backward passes, by provider."""
    rows = [row for row in measurement.stored(backward.KIND).rows if row["op"] == "layer_norm_backward"]
    return {
        provider: sorted((row["N"], row["gbps"]) for row in rows if row["provider"] == provider and row["N"] in LENGTHS)
        for provider in DEVICE_TIMES
    }


def _start(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure()
    axes = figure.add_subplot()
    axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, 16800))
    axes.set_xticks(range(0, 16385, 2048))
    return figure, axes


def _draw(axes: Axes, look: str, points: Sequence[tuple[int, float]], name: str, *, below: bool = False, **changes: Any) -> None:
    """Draw a line, and its name above or below it."""
    axes.plot(*zip(*points, strict=True), **style.line(look, markersize=5) | changes)
    if name:
        at = points[int(len(points) * 0.75)]
        axes.annotate(name, at, (0, -20 if below else 12), textcoords="offset points", ha="center", color=style.INK)


def _cite(axes: Axes, words: str) -> None:
    axes.set_xlabel(f"{axes.get_xlabel()}\n{words}")
