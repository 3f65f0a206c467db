"""The two figures of lesson 06: the norms under the roofline, and the sizes at which a call costs more than its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from course_lib.bench import measurement
from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture
from course_lib.lessons.norm_times import NormTimes


@dataclass(frozen=True)
class Device:
    """A GPU's data sheet: bandwidth in byte/s, peak in FLOP/s (fp32, no tensor cores)."""

    name: str
    bandwidth: float
    peak: float

    @property
    def ridge(self) -> float:
        """Return the FLOP per byte above which arithmetic takes more time than memory."""
        return self.peak / self.bandwidth


H100 = Device("H100 SXM", 3.35e12, 67e12)  # NVIDIA's data sheet
FLOP = {"LayerNorm": 7, "RMSNorm": 4}  # operations per element
_FP16 = 2  # bytes per element
INTENSITY = {  # FLOP per byte, in fp16
    "LayerNorm, op by op": FLOP["LayerNorm"] / (8 * _FP16),
    "RMSNorm": FLOP["RMSNorm"] / (2 * _FP16),
    "LayerNorm": FLOP["LayerNorm"] / (2 * _FP16),
    "matrix product": 2 * 4096**3 / (3 * 4096**2 * _FP16),
}
_ELEMENTS = 2**25  # elements of the matrices that the course times


def norms_on_the_roofline(times: NormTimes) -> Picture:
    """Draw the roof of an H100, operations on it, and below it the measured resident kernels at 8192 columns."""
    measured = {
        f"{name}, measured": (INTENSITY[name], FLOP[name] * _ELEMENTS / times.us(op, "resident", 8192) * 1e6)
        for name, op in (("LayerNorm", "layer_norm"), ("RMSNorm", "rms_norm"))
    }
    return picture(
        roofline(H100, INTENSITY, measured, times.label),
        alt="Roofline of an H100: TFLOP/s against FLOP per byte, both axes logarithmic. The slope of the bandwidth meets the level of the peak at "
        "20 FLOP per byte. LayerNorm op by op, RMSNorm and LayerNorm stand on the slope at 0.44, 1 and 1.75, a product of 4096 x 4096 matrices "
        f"on the level. Diamonds a little below: {times.label}.",
    )


def roofline(device: Device, intensities: Mapping[str, float], measured: Mapping[str, tuple[float, float]], source: str) -> Figure:
    """Draw the FLOP/s that the device allows against FLOP per byte, with operations on the roof and measurements below it.

    Args:
        intensities: FLOP per byte of each operation, by its label.
        measured: (FLOP per byte, FLOP/s) of each measured kernel, by its label.
        source: the device and the date of the measurements, written on the figure.
    """
    figure = Figure(figsize=(style.WIDTH, 4.6))
    axes = figure.add_subplot()
    grid = np.logspace(-1.7, 3.6, 200)
    roof = np.minimum(device.peak, grid * device.bandwidth) / 1e12
    axes.plot(grid, roof, color=style.COLOURS["floor"], linewidth=2.2, marker="")
    axes.axvline(device.ridge, color=style.QUIET, linestyle=":", linewidth=1.2)
    axes.annotate(f"ridge: {device.ridge:.0f} FLOP per byte", (device.ridge, 0.4), (6, 0), textcoords="offset points", color=style.QUIET)
    for name, intensity in intensities.items():
        height = min(device.peak, intensity * device.bandwidth) / 1e12
        axes.plot([intensity], [height], linestyle="", marker="o", color=style.COLOURS["two_pass"], markersize=8)
        under = intensity > device.ridge
        axes.annotate(
            name, (intensity, height), (0, -18) if under else (-8, 4), textcoords="offset points", ha="center" if under else "right"
        )
    for name, (intensity, speed) in measured.items():
        axes.plot(
            [intensity], [speed / 1e12], linestyle="", marker="D", color=style.COLOURS["fault"], markeredgecolor=style.INK, markersize=8
        )
        axes.annotate(name, (intensity, speed / 1e12), (9, -11), textcoords="offset points")
    words = f"roof: data sheet of the {device.name}\ndiamonds: {source}"
    axes.text(1.0, 0.02, words, transform=axes.transAxes, ha="right", color=style.QUIET)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity in FLOP per byte", ylabel="TFLOP/s")
    axes.set(xlim=(0.02, 4000), ylim=(0.1, 150))
    axes.set_title("A norm stands far left of the ridge: only bytes cost time")
    return figure


def call_or_bytes(bandwidth: float) -> Picture:
    """Draw the time of a copy against its bytes, and the CPU time of a call, from the stored measurement of the host.

    Args:
        bandwidth: bandwidth of the copy, in byte/s.
    """
    host = measurement.stored("host")
    calls = {
        label: next(row["us"] for row in host.rows if (row["op"], row["passes"], row["provider"]) == ("layer_norm", "forward", provider))
        for provider, label in (("torch", "a call of PyTorch's LayerNorm"), ("kernels", "a call of the course's kernel"))
    }
    shapes = {"16 x 4096": 2 * 16 * 4096 * _FP16, "4096 x 8192": 2 * 4096 * 8192 * _FP16}
    told = ", ".join(f"{label} {us:.0f} µs" for label, us in calls.items())
    return picture(
        _draw_calls(np.logspace(4, 9.3, 60), bandwidth, calls, shapes, host.label()),
        alt=f"Microseconds against bytes moved, both axes logarithmic: a copy at {bandwidth / 1e9:.0f} GB/s rises along a straight line. "
        f"Level lines, {host.label()}: {told}. A matrix of 16 x 4096 lies far below them, one of 4096 x 8192 between them.",
    )


def _draw_calls(sizes: np.ndarray, bandwidth: float, calls: Mapping[str, float], shapes: Mapping[str, float], source: str) -> Figure:
    figure = Figure(figsize=(style.WIDTH, 4.0))
    axes = figure.add_subplot()
    axes.plot(sizes, sizes / bandwidth * 1e6, color=style.COLOURS["floor"], linestyle="-", marker="", linewidth=2.2)
    for (label, us), key in zip(calls.items(), ("torch", "resident"), strict=True):
        axes.axhline(us, color=style.COLOURS[key], linestyle="--", linewidth=1.6)
        words = f"{label}: {us:.0f} µs, as long as {us * bandwidth / 1e12:.0f} MB"
        axes.annotate(words, (sizes[0], us), (4, 4), textcoords="offset points")
    for name, size in shapes.items():
        at = size / bandwidth * 1e6
        axes.plot([size], [at], linestyle="", marker="o", color=style.COLOURS["floor"], markersize=8)
        axes.annotate(f"a copy of {name}", (size, at), (8, -12), textcoords="offset points", ha="left")
    axes.text(1.0, 0.02, f"calls: {source}", transform=axes.transAxes, ha="right", color=style.QUIET)
    axes.set(xscale="log", yscale="log", xlabel="bytes moved", ylabel="microseconds", xlim=(sizes[0], sizes[-1] * 4))
    axes.set_ylim(0.003, 2000)
    axes.set_title("A small matrix is moved long before Python has made the call")
    return figure
