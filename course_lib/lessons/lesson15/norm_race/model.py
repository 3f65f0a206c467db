"""Lesson 15: the times of a race between PyTorch, torch.compile, two libraries, the tutorial's
design and the course's kernels.

There are two clocks. The first is the device's time alone. The second includes the call from
Python: host and device work at the same time, the host on the next call, so it is the longer of the
two times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_names
from course_lib.bench import backward, forward, host, measurement
from course_lib.bench.measurement import Measurement
from course_lib.lessons import own_kernels, own_launch
from course_lib.lessons.pictures.kernel_roofline.model import LENGTHS, time_own
from course_lib.lessons.pictures.kernel_roofline.model import OWN as OWN_KERNELS

NAMES = {
    "torch": "PyTorch", "compile": "torch.compile", "liger": "Liger-Kernel", "quack": "quack",
    "locked": N_("tutorial's design, mended"),
    "ours": N_("the course's"),
}  # fmt: skip
OPERATIONS = {
    "layer_norm": "LayerNorm", "rms_norm": "RMSNorm", "add_rms_norm": N_("add + RMSNorm"),
    "layer_norm_backward": N_("LayerNorm backward"),
    "rms_norm_backward": N_("RMSNorm backward"),
}  # fmt: skip
OWN = ("07a", "08a", "09a")  # exercises of whole operations that are raced here
HERE, STORED = "here", "stored"


@cache
def _measure_here() -> tuple[Measurement, Measurement]:
    """Measure forward and backward on this machine's GPU, for every installed provider of the race.
    This takes minutes."""
    names = [name for name in NAMES if name != "locked"]
    return forward.measure(LENGTHS, providers=names), backward.measure(
        LENGTHS, providers=[*names, "locked"]
    )


def make_data(where: str = STORED, exercise_id: str = "") -> dict[str, Any]:
    """Return the data for ``picture.js``.

    Args:
        where: STORED, or HERE for times of this machine's GPU.
        exercise_id: one of OWN, the exercise whose kernel by the learner joins the race, or "".

    Raises: CourseError if nothing is stored, if HERE has no GPU, or if the learner's kernel is to
    race stored times or does not pass.
    """
    if exercise_id and where != HERE:
        words = _(
            "the times are those of a stored GPU, and your {exercise} would be timed on this one."
            " Choose this GPU for all of them."
        )
        raise CourseError(words.format(exercise=exercise_id))
    if where == HERE and course_lib.MODE != "gpu":
        raise CourseError(
            _("measuring needs a GPU, and this machine has none. `course doctor` says why.")
        )
    of_forward, of_backward = (
        _measure_here()
        if where == HERE
        else (measurement.stored(forward.KIND), measurement.stored(backward.KIND))
    )
    # always the stored host's times; the label names that host
    calls = measurement.stored(host.KIND)
    names = translate_names(NAMES)
    races = {
        op: _list_times(of_backward if op.endswith("backward") else of_forward, op)
        for op in OPERATIONS
    }
    if exercise_id:
        module = own_kernels.load_passing(exercise_id)
        kernel = getattr(module, own_launch.name_kernel(exercise_id))
        names["own"] = _("yours, {exercise}").format(exercise=exercise_id)
        races[OWN_KERNELS[exercise_id].op]["own"] = [
            time_own(exercise_id, kernel, N) for N in LENGTHS
        ]
    return {
        "start": {"op": OWN_KERNELS[exercise_id].op if exercise_id else "layer_norm", "n": 8192,
            "clock": "device"},
        "lengths": LENGTHS, "elements": forward.ELEMENTS, "names": names,
        "operations": {op: _(words) for op, words in OPERATIONS.items()}, "races": races,
        "floors": {op: _list_floors(of_backward if op.endswith("backward") else of_forward,
            op) for op in OPERATIONS},
        "calls": {op: _list_calls(calls, op) for op in OPERATIONS if not op.endswith("backward")},
        "source": of_forward.label(),
        "host": _("64 x 1024 numbers, host of the {gpu}").format(gpu=calls.label()),
    }  # fmt: skip


def _list_times(measured: Measurement, op: str) -> dict[str, list[float | None]]:
    """Return microseconds by provider, one per row length, or None if not measured. Providers
    without any time are left out."""
    us = {(row["provider"], row["N"]): row["us"] for row in measured.rows if row["op"] == op}
    times = {name: [us.get((name, N)) for N in LENGTHS] for name in NAMES}
    return {
        name: row_times
        for name, row_times in times.items()
        if any(time is not None for time in row_times)
    }


def _list_floors(measured: Measurement, op: str) -> Sequence[float]:
    rows = {
        row["N"]: row for row in measured.rows if row["op"] == op and row["provider"] == "torch"
    }
    return [rows[N]["us"] / rows[N]["over_floor"] for N in LENGTHS]


def _list_calls(calls: Measurement, op: str) -> dict[str, float]:
    """Return by provider the microseconds that one forward call takes on the host."""
    return {
        row["provider"]: row["us"]
        for row in calls.rows
        if (row["op"], row["passes"]) == (op, "forward")
    }
