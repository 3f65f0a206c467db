"""The two figures of lesson 04: where the kernels stand under the roofline, and when a launch costs more than its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style


@dataclass(frozen=True)
class Device:
    """What a data sheet says of a GPU: bandwidth in byte/s, peak in FLOP/s (fp32, no tensor cores)."""

    name: str
    bandwidth: float
    peak: float

    @property
    def ridge(self) -> float:
        """FLOP a byte at which arithmetic begins to cost more time than memory."""
        return self.peak / self.bandwidth


def roofline(
    device: Device, intensities: Mapping[str, float], measured: Mapping[str, tuple[float, float]], source: str
) -> Figure:
    """FLOP/s that the device allows, against FLOP a byte, with operations on the roof and measurements below it.

    Args:
        intensities: FLOP a byte of each operation, by the name to write beside it.
        measured: (FLOP a byte, FLOP/s) of each measured kernel, by name.
        source: the device and the date of the measurements, which stand on the figure.
    """
    figure = Figure(figsize=(style.WIDTH, 4.6))
    axes = figure.add_subplot()
    grid = np.logspace(-1.7, 3.6, 200)
    axes.plot(
        grid,
        np.minimum(device.peak, grid * device.bandwidth) / 1e12,
        color=style.COLOURS["floor"],
        linewidth=2.2,
        marker="",
    )
    axes.axvline(device.ridge, color=style.QUIET, linestyle=":", linewidth=1.2)
    axes.annotate(
        f"ridge: {device.ridge:.0f} FLOP a byte",
        (device.ridge, 0.4),
        (6, 0),
        textcoords="offset points",
        color=style.QUIET,
    )
    for name, intensity in intensities.items():
        height = min(device.peak, intensity * device.bandwidth) / 1e12
        axes.plot([intensity], [height], linestyle="", marker="o", color=style.COLOURS["two_pass"], markersize=8)
        under = intensity > device.ridge
        axes.annotate(
            name,
            (intensity, height),
            (0, -18) if under else (-8, 4),
            textcoords="offset points",
            ha="center" if under else "right",
        )
    for name, (intensity, speed) in measured.items():
        axes.plot(
            [intensity],
            [speed / 1e12],
            linestyle="",
            marker="D",
            color=style.COLOURS["fault"],
            markeredgecolor=style.INK,
            markersize=8,
        )
        axes.annotate(name, (intensity, speed / 1e12), (9, -11), textcoords="offset points")
    axes.text(
        1.0,
        0.02,
        f"roof: data sheet of the {device.name}\ndiamonds: {source}",
        transform=axes.transAxes,
        ha="right",
        color=style.QUIET,
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="arithmetic intensity in FLOP a byte",
        ylabel="TFLOP/s",
        xlim=(0.02, 4000),
        ylim=(0.1, 150),
    )
    axes.set_title("A norm stands far left of the ridge: only bytes cost time")
    return figure


def launch_or_bytes(sizes: Sequence[float], bandwidth: float, launch_us: float, shapes: Mapping[str, float]) -> Figure:
    """Time of a copy against its bytes: a launch, then bytes over bandwidth.

    Args:
        sizes: bytes moved, in rising order.
        bandwidth: byte/s; launch_us: what a launch costs before the first byte, in microseconds.
        shapes: bytes of some matrices, by the name to write beside each.
    """
    figure = Figure(figsize=(style.WIDTH, 3.8))
    axes = figure.add_subplot()
    moving = np.asarray(sizes) / bandwidth * 1e6
    axes.plot(sizes, launch_us + moving, color=style.COLOURS["resident"], linestyle="-", marker="", linewidth=2.2)
    axes.plot(sizes, moving, color=style.COLOURS["floor"], linestyle="--", marker="", linewidth=1.2)
    axes.axvline(launch_us * 1e-6 * bandwidth, color=style.QUIET, linestyle=":", linewidth=1.2)
    even = launch_us * 1e-6 * bandwidth
    axes.annotate(
        f"as long as a launch: {even / 1e6:.0f} MB",
        (even, 0.02),
        (-6, 0),
        textcoords="offset points",
        ha="right",
        color=style.QUIET,
    )
    axes.annotate("bytes alone", (sizes[len(sizes) // 3], moving[len(sizes) // 3]), (8, -8), textcoords="offset points")
    for name, size in shapes.items():
        at = launch_us + size / bandwidth * 1e6
        axes.plot([size], [at], linestyle="", marker="o", color=style.COLOURS["resident"], markersize=8)
        axes.annotate(
            name,
            (size, at),
            (-4, 9) if size < even else (8, -14),
            textcoords="offset points",
            ha="center" if size < even else "left",
        )
    axes.set(xscale="log", yscale="log", xlabel="bytes moved", ylabel="microseconds", ylim=(0.01, None))
    axes.set_title(f"Below {even / 1e6:.0f} MB the launch is the larger part of the time")
    return figure
