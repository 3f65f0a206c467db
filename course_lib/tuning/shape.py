"""The report on one shape: bytes, floor and launch of the forward and the backward pass, and on a
GPU their times.

Without a GPU the device is an H100, whose measurements are stored: the floor is read off those of
its elementwise passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import format_count, format_number
from course_lib.bench import backward, forward, long_rows, measurement
from course_lib.bench.grid import Grid, Sweep
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import DTYPES, OPERATIONS, NormOperation
from course_lib.kernels.launch import choice, tables
from course_lib.kernels.launch.device_classes import DEVICE_CLASSES, H100, find_line

NORMS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
MOST_COLUMNS, MOST_ROWS = max(long_rows.COLUMNS), 1 << 24
# why a pass takes another algorithm than "split", which the line of its table says
_TOO_FEW = {
    "few rows": "A second read of so small an x costs less than waits within a shared row.",
    "columns": "The rows are too few for programs that share a row and wait for each other.",
}
_NO_ROOM = "The programs that share a row would have no room to run at once."


@dataclass(frozen=True)
class StoredTime:
    """A stored time of the course's kernels, and the one of PyTorch in the same run (None if it has
    none)."""

    M: int
    N: int
    us: float
    torch_us: float | None
    floor_us: float
    device: str
    date: str


@dataclass(frozen=True)
class PassReport:
    """One pass, forward or backward.

    Attributes:
        moved: the bytes that the pass has to move.
        floor_us: the time of the fastest elementwise pass over as many bytes.
        launch, why: what the launch tables choose, and their reason, in words.
        stored: the stored time of the nearest shape; None if no measurement of this dtype has rows
            as short or as long.
        us, torch_us: times of the course and of PyTorch, measured now; None if they were not.
    """

    op: str
    moved: int
    floor_us: float
    launch: str
    why: str
    stored: StoredTime | None
    us: float | None = None
    torch_us: float | None = None

    def write(self) -> list[str]:
        """Write three texts: bytes and times, the launch with its reason, and the nearest stored
        time."""
        now = (
            ""
            if self.us is None and self.torch_us is None
            else (
                f" measured now, the course {_format_us(self.us)}, PyTorch"
                f" {_format_us(self.torch_us)}"
            )
        )
        near = "none is stored of this dtype with rows so short or so long."
        if s := self.stored:
            device = next(
                (
                    device_class.name
                    for device_class in DEVICE_CLASSES
                    if device_class.name in s.device
                ),
                s.device,
            )
            beside = f"PyTorch {_format_us(s.torch_us)}, floor {_format_us(s.floor_us)}"
            near = f"{s.M} x {s.N}, {_format_us(s.us)} us, {beside} ({device}, {s.date})"
        return [
            f"{_format_bytes(self.moved)}, floor {_format_us(self.floor_us)} us{now}",
            f"{self.launch}. {self.why}",
            f"Nearest: {near}",
        ]


@dataclass(frozen=True)
class ShapeReport:
    """The result of :func:`make_report`. ``device`` is the GPU's name; ``measured`` has the times
    of this machine's GPU, if it took any."""

    norm: str
    M: int
    N: int
    dtype: str
    device: str
    passes: tuple[PassReport, PassReport]
    measured: Measurement | None = None

    def write_title(self) -> str:
        return f"{NORMS[self.norm]}, M = {self.M}, N = {self.N}, {self.dtype}, on an {self.device}"


def make_report(
    N: int, M: int, dtype: str = "fp16", norm: str = "layer_norm", *, timed: bool = True
) -> ShapeReport:
    """Report on matrices of M rows and N columns.

    Args:
        dtype: "fp16", "bf16" or "fp32".
        norm: "layer_norm" or "rms_norm".
        timed: on a GPU, time the course's kernels and PyTorch's.

    Raises: CourseError if one of them has another value, no measurement is stored, or the GPU has
    no room for the shape.
    """
    for name, value, most in (("columns, N,", N, MOST_COLUMNS), ("rows, M,", M, MOST_ROWS)):
        if not 1 <= value <= most:
            raise CourseError(
                _("the number of {name} has to be from 1 to {most}; you asked for {value}.").format(
                    name=name, most=most, value=value
                )
            )
    if dtype not in DTYPES:
        raise CourseError(
            _("there is no dtype {dtype!r} here. There are: {dtypes}.").format(
                dtype=dtype, dtypes=", ".join(DTYPES)
            )
        )
    if norm not in NORMS:
        raise CourseError(
            _("there is no norm {norm!r} here. There are: {norms}.").format(
                norm=norm, norms=", ".join(NORMS)
            )
        )
    ops = OPERATIONS[norm], OPERATIONS[f"{norm}_backward"]
    try:
        grid = Grid(
            "shape", (N,), ("ours", "torch"), (Sweep(tuple(op.name for op in ops), rows=M),)
        )
        measured = grid.measure(dtype=dtype) if timed and course_lib.MODE == "gpu" else None
        # A tensor of the device "meta" has a shape and no memory. It gets the lines of the class
        # H100.
        x, w = (
            torch.empty(
                shape, dtype=DTYPES[dtype], device=course_lib.DEVICE if measured else "meta"
            )
            for shape in ((M, N), (N,))
        )
    except torch.OutOfMemoryError as out_of_memory:
        raise CourseError(
            _("the GPU has no room for {M} x {N} in {dtype} ({error}). Ask for fewer rows.").format(
                M=M, N=N, dtype=dtype, error=str(out_of_memory).split(".")[0]
            )
        ) from None
    rows = read_times(measured.device if measured else H100.name, dtype)
    passes = [_report_pass(op, x, w, dtype, rows, measured) for op in ops]
    return ShapeReport(
        norm,
        M,
        N,
        dtype,
        measured.device if measured else rows[0]["device"],
        (passes[0], passes[1]),
        measured,
    )


def read_times(device: str, dtype: str) -> list[dict[str, Any]]:
    """Return the stored rows of forward and backward passes, with device and date: those of
    ``device``, or of an H100 if it has none of ``dtype``. Rows of other dtypes are among them.

    Raises: CourseError if neither is stored.
    """
    stored = measurement.read_all((forward.KIND, backward.KIND, long_rows.KIND))
    for name in (device, H100.name):
        rows = [
            row | {"device": measured.device, "date": measured.date}
            for measured in stored
            if name in measured.device
            for row in measured.rows
        ]
        if any(row["dtype"] == dtype for row in rows):
            return [row | {"op": row["op"].split(" ")[0]} for row in rows]
    raise CourseError(
        _(
            "no measurement of an {device} in {dtype} is stored. `course update` brings the"
            " course's own."
        ).format(device=H100.name, dtype=dtype)
    )


def _report_pass(
    op: NormOperation,
    x: torch.Tensor,
    w: torch.Tensor,
    dtype: str,
    rows: list[dict[str, Any]],
    measured: Measurement | None,
) -> PassReport:
    moved = op.matrices * x.numel() * x.element_size()
    now = (
        {row["provider"]: row for row in measured.rows if row["op"] == op.name} if measured else {}
    )
    floor = next((row["us"] / row["over_floor"] for row in now.values()), None) or _estimate_floor(
        moved, rows
    )
    launch, why = _describe_launch(op, x, w)
    us, torch_us = (now[name]["us"] if name in now else None for name in ("ours", "torch"))
    M, N = x.shape
    return PassReport(
        op.name, moved, floor, launch, why, _find_nearest(op, M, N, dtype, rows), us, torch_us
    )


def _estimate_floor(moved: int, rows: list[dict[str, Any]]) -> float:
    """Estimate the microseconds of the fastest elementwise pass that moves so many bytes, by those
    of ``rows``.

    Between two stored passes the time grows evenly. No pass is shorter than the shortest, and
    beyond the largest the bandwidth stays.
    """
    floors: dict[int, float] = {}
    for row in rows:
        count = OPERATIONS[row["op"]].matrices * row["M"] * row["N"] * DTYPES[row["dtype"]].itemsize
        floors[count] = min(row["us"] / row["over_floor"], floors.get(count, math.inf))
    counts = sorted(floors)
    return float(np.interp(moved, counts, [floors[count] for count in counts])) * max(
        1.0, moved / counts[-1]
    )


def _find_nearest(
    op: NormOperation, M: int, N: int, dtype: str, rows: list[dict[str, Any]]
) -> StoredTime | None:
    """Find the stored time of the nearest shape. A factor in N is as far as its square in M,
    because the launch depends on N."""
    alike = [row for row in rows if (row["op"], row["dtype"]) == (op.name, dtype)]
    our_rows = [row for row in alike if row["provider"] == "ours"]
    if not our_rows or not min(row["N"] for row in our_rows) <= N <= max(
        row["N"] for row in our_rows
    ):
        return None
    near = min(
        our_rows, key=lambda row: 2 * abs(math.log2(row["N"] / N)) + abs(math.log2(row["M"] / M))
    )
    same = [
        row for row in alike if all(row[key] == near[key] for key in ("M", "N", "device", "date"))
    ]
    torch_us = next((row["us"] for row in same if row["provider"] == "torch"), None)
    return StoredTime(
        near["M"],
        near["N"],
        near["us"],
        torch_us,
        near["us"] / near["over_floor"],
        near["device"],
        near["date"],
    )


def _describe_launch(op: NormOperation, x: torch.Tensor, w: torch.Tensor) -> tuple[str, str]:
    """Return the launch that the course's functions choose for x and w (and b, which is like w),
    and the reason."""
    (M, N), centred, tuned = x.shape, op.centred, choice.find_device_class(x)
    facts = {"centred": centred, "tuned": tuned}
    name = (
        choice.choose_backward(x, **facts)
        if op.backward
        else choice.choose_forward(x, None, w, w, **facts)
    )
    line = find_line(tuned.backward if op.backward else tuned.forward, N, x.dtype, centred, False)
    shares = (
        tables.split_backward(N, x.dtype, tuned=tuned)
        if op.backward
        else tables.split(N, x.dtype, add=False, **facts)
    )
    why = (
        line.why
        if line.algorithm == name
        else _TOO_FEW[name]
        if choice.has_room_for(x, shares)
        else _NO_ROOM
    )
    rows, tail, share = 1, 0, "1 row per program"
    if name == "resident":
        rows, block, num_warps = tables.resident(N, x.dtype, tuned=tuned, centred=centred)
        share = f"{format_count(rows, 'row')} per program"
    elif name == "persistent":
        rows, block, num_warps = tables.persistent(N, x.dtype, tuned=tuned)[:3]
        share = f"{format_count(rows, 'row')} per tile"
    elif name == "two tiles":
        block, tail, num_warps = (tables.two_tiles_backward if op.backward else tables.two_tiles)(
            N, x.dtype, tuned=tuned
        )[:3]
    elif name == "columns":
        block, num_warps = tables.columns_backward(N)
        share = (
            f"{format_count(tables.row_chunks(M, -(-N // block), centred=centred)[1], 'row')} per"
            " program"
        )
    elif name == "blocked":
        block, num_warps = tables.blocked(N)[1:]
    else:
        block = shares.block
        num_warps = shares.num_warps
        share = f"{format_count(shares.chunks, 'program')} per row"
    held = max(1, (rows * block + tail) // (32 * num_warps))
    return (
        (
            f"{name}: BLOCK {block}{f' + {tail}' if tail else ''},"
            f" {format_count(num_warps, 'warp')}, {share}, {held} of x per thread"
        ),
        why,
    )


def _format_bytes(count: int) -> str:
    size, unit = next(
        pair
        for pair in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))
        if count >= pair[0]
    )
    return f"{format_number(count / size)} {unit}"


def _format_us(us: float | None) -> str:
    return f"{us:.0f}" if us and us >= 1000 else format_number(us, 3)
