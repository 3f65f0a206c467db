"""Measurements as the lines of a chart: time over the floor, by row length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.lessons.pictures.chart.model import Axis, Series


def make_line(rows: Iterable[Mapping[str, Any]], provider: str, name: str, colour: str) -> Series:
    """Return one provider's time over the floor by N, shortest row first."""
    points = sorted((row["N"], row["over_floor"]) for row in rows if row["provider"] == provider)
    return Series(name, [point[0] for point in points], [point[1] for point in points], colour)


def make_length_axis(rows: Iterable[Mapping[str, Any]], words: str = "") -> Axis:
    """Return a logarithmic axis with a tick at each row length; ``words`` follow its name."""
    return Axis(f"{_('columns N')}{words}", log=True, ticks=sorted({row["N"] for row in rows}))
