"""The two figures of lesson 06: the norms under the roofline, and the sizes at which a call costs
more than its bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench import measurement
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.norm_times import NormTimes
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, Series, View, chart


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
    N_("LayerNorm, op by op"): FLOP["LayerNorm"] / (8 * _FP16),
    "RMSNorm": FLOP["RMSNorm"] / (2 * _FP16),
    "LayerNorm": FLOP["LayerNorm"] / (2 * _FP16),
}
_ELEMENTS = 2**25  # elements of the matrices that the course times


def norms_on_the_roofline(times: NormTimes) -> MovingPicture:
    """Show the FLOP/s that an H100 allows against FLOP per byte, operations on that roof, and below
    it the measured resident kernels at 8192 columns."""
    corners = (0.03, H100.ridge, 400)  # at 0.03 the roof is 0.1 TFLOP/s: both axes begin there
    roof = Series(
        _("roof of the data sheet"),
        corners,
        [min(H100.peak, intensity * H100.bandwidth) / 1e12 for intensity in corners],
        "floor",
        dots=False,
    )
    allowed = [
        Series(
            _(name),
            [intensity],
            [min(H100.peak, intensity * H100.bandwidth) / 1e12],
            "two_pass",
            line=False,
        )
        for name, intensity in INTENSITY.items()
    ]
    measured = [
        Series(
            _("{name}, measured").format(name=name),
            [INTENSITY[name]],
            [FLOP[name] * _ELEMENTS / times.us(op, "resident", 8192) / 1e6],
            "one_pass",
            line=False,
        )
        for name, op in (("LayerNorm", "layer_norm"), ("RMSNorm", "rms_norm"))
    ]
    plot = Plot(
        Axis(_("arithmetic intensity in FLOP per byte"), log=True, low=0.03, high=400),
        Axis("TFLOP/s", log=True, low=0.1, high=500, unit=" TFLOP/s"),
        [roof, *allowed, *measured],
        [Level(H100.ridge, _("ridge: {ridge:.0f} FLOP per byte").format(ridge=H100.ridge), "x")],
    )
    return chart(
        View(
            _("A norm stands far left of the ridge: only bytes cost time"),
            [plot],
            _("Data sheet of the {name}; measured: {source}.").format(
                name=H100.name, source=times.label
            ),
        ),
        alt=_(
            "Roofline of an H100: TFLOP/s against FLOP per byte, both axes logarithmic. The slope"
            " of the bandwidth meets the level of the peak at 20 FLOP per byte. LayerNorm op by op,"
            " RMSNorm and LayerNorm stand on the slope at 0.44, 1 and 1.75. The measured norms lie"
            " a little below: {source}."
        ).format(source=times.label),
    )


def call_or_bytes(bandwidth: float) -> MovingPicture:
    """Show the time of a copy against its bytes, and the CPU time of a call, from the stored
    measurement of the host.

    Args:
        bandwidth: bandwidth of the copy, in byte/s.
    """
    host = measurement.stored("host")
    calls = {
        label: next(
            row["us"]
            for row in host.rows
            if (row["op"], row["passes"], row["provider"]) == ("layer_norm", "forward", provider)
        )
        for provider, label in (
            ("torch", _("PyTorch's LayerNorm")),
            ("kernels", _("the course's kernel")),
        )
    }
    shapes = {"16 x 4096": 2 * 16 * 4096 * _FP16, "4096 x 8192": 2 * 4096 * 8192 * _FP16}
    sizes = np.logspace(4, 9.3, 40)
    line = Series(
        _("a copy"), sizes.tolist(), (sizes / bandwidth * 1e6).tolist(), "floor", dots=False
    )
    copies = [
        Series(
            _("a copy of {name}").format(name=name),
            [size],
            [size / bandwidth * 1e6],
            "x",
            line=False,
        )
        for name, size in shapes.items()
    ]
    level = _("a call of {name}: {us:.0f} \u00b5s, the time of copying {size:.0f} MB")
    levels = [
        Level(us, level.format(name=label, us=us, size=us * bandwidth / 1e12))
        for label, us in calls.items()
    ]
    calls_text = _(", ").join(f"{label} {us:.0f} \u00b5s" for label, us in calls.items())
    plot = Plot(
        Axis(_("bytes moved"), log=True),
        Axis(_("microseconds"), log=True, low=0.003, high=2000, unit=" \u00b5s"),
        [line, *copies],
        levels,
    )
    return chart(
        View(
            _("A small matrix is moved long before Python has made the call"),
            [plot],
            _("Calls: {source}.").format(source=host.label()),
        ),
        alt=_(
            "Microseconds against bytes moved, both axes logarithmic: a copy at {bandwidth:.0f}"
            " GB/s rises along a straight line. Level lines, {source}: {told}. A matrix of 16 x"
            " 4096 lies far below them, one of 4096 x 8192 between them."
        ).format(bandwidth=bandwidth / 1e9, source=host.label(), told=calls_text),
    )
