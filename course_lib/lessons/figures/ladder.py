"""``ladder``: how near each kernel comes to the memory's limit. Every kernel that the learner
passes joins the chart.

A bar is a time divided by the least that the operation needs: 1 is the limit. Where no GPU can time
the learner's kernel, words say how often it moves the least bytes.
"""

from __future__ import annotations

import functools

import course_lib
from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import format_count
from course_lib.bench import backward, forward, measurement
from course_lib.grading.public import PASS
from course_lib.learner import progress
from course_lib.lessons import own_kernels, own_launch
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.norm_times import norm_times
from course_lib.lessons.pictures.chart.model import Bar, Bars, View, chart
from course_lib.lessons.pictures.compiled_kernel.model import learners_kernel
from course_lib.lessons.pictures.kernel_roofline.model import (
    ELEMENTS,
    KERNELS,
    OWN,
    count_passes,
    time_own,
)

COLUMNS = 8192  # fp16, M N = 2^25
# the course's kernel beside an exercise's
_COURSE = {"07a": "blocked", "08a": "resident", "09a": "fused", "13b": "persistent"}
# what PyTorch does: a name, and the operation and provider of a measurement
_PEERS = {
    "07a": (N_("PyTorch's LayerNorm"), "layer_norm", "torch"),
    "09a": (N_("an addition, then RMSNorm"), "add_rms_norm", "unfused"),
}
# what libraries do, for the end of the course: an operation, by the exercise whose work it is
_OPERATIONS = {"07a": "layer_norm", "09a": "add_rms_norm", "13b": "layer_norm_backward"}
_LIBRARIES = {"torch": "PyTorch", "liger": "Liger", "quack": "quack"}
_OWN_NAME = N_("yours")


def ladder(lesson: str, *, with_libraries: bool = False) -> MovingPicture:
    """Show the course's kernels of the lessons up to ``lesson``, such as "08", and the learner's
    that are passed; ``with_libraries``, those of Liger-Kernel and quack, too.

    On a GPU the learner's kernels are timed; on a CPU the bytes that they move are counted.

    Raises: CourseError if nothing is stored.
    """
    stored_parts = measurement.stored(forward.KIND), measurement.stored(backward.KIND)
    times = {
        (row["op"], row["provider"], row["N"]): row for part in stored_parts for row in part.rows
    }
    source = stored_parts[0].label()
    groups: list[tuple[str, list[Bar]]] = []
    exercise_ids = [exercise_id for exercise_id in OWN if exercise_id[:2] <= lesson]
    for exercise_id in exercise_ids:
        stored = (
            [(_(_PEERS[exercise_id][0]), _PEERS[exercise_id][1:], "torch")]
            if exercise_id in _PEERS
            else []
        )
        if exercise_id in _COURSE:
            kernel = KERNELS[_COURSE[exercise_id]]
            stored.append((_("the course's"), (kernel.op, kernel.provider), "resident"))
        if with_libraries and exercise_id in _OPERATIONS:
            stored += [
                (name, (_OPERATIONS[exercise_id], provider), "quiet")
                for provider, name in _LIBRARIES.items()
                if provider not in {row[1][1] for row in stored}
            ]
        bars = [
            _make_bar(name, times[*row, COLUMNS]["over_floor"], _("{value:.2f} in time"), colour)
            for name, row, colour in stored
        ]
        groups.append(
            (f"{exercise_id} {catalog.get(exercise_id).title}", [*bars, _make_own(exercise_id)])
        )
    passed = sum(map(_has_passed, exercise_ids))
    title = (
        _("{passed} of {kernels} passed") if passed else _("None of your kernels has passed yet")
    )
    title = title.format(
        passed=passed, kernels=format_count(len(groups), "kernel"), kernel_count=len(groups)
    )
    caption = _(
        "Times: fp16, {M} x {N}. {source}. A kernel of yours gets a bar where a GPU times it;"
        " elsewhere its bytes are counted. Some of them may come from a cache, so a time can be"
        " nearer to 1 than the bytes."
    ).format(M=ELEMENTS // COLUMNS, N=COLUMNS, source=source)
    bars_text = _("; ").join(
        _("{name}: {values}").format(
            name=name, values=_(", ").join(f"{bar.name} {bar.words}" for bar in bars)
        )
        for name, bars in groups
    )
    return chart(
        View(
            title,
            [
                Bars(
                    groups,
                    _("times the least that the operation needs"),
                    level=(1.0, _("the memory's limit")),
                )
            ],
            caption,
        ),
        alt=_("{told}.").format(told=bars_text),
    )


def _make_own(exercise_id: str) -> Bar:
    """Make the bar of the learner's kernel; it has no length if the last check was no pass, if no
    GPU can time the kernel, or if it cannot be run."""
    least = OWN[exercise_id].least
    if not _has_passed(exercise_id):
        return Bar(_(_OWN_NAME), [(0.0, "ink")], _("not passed yet"))
    try:
        if course_lib.MODE == "gpu":
            kernel = getattr(
                own_kernels.load_passing(exercise_id), own_launch.name_kernel(exercise_id)
            )
            us = time_own(exercise_id, kernel, COLUMNS)
            assert us is not None, "every kernel takes rows of COLUMNS"
            return _make_bar(
                _(_OWN_NAME),
                us / (least * _measure_pass_us()),
                _("{value:.2f} in time on this GPU"),
                "welford",
            )
        moved = count_passes(exercise_id, learners_kernel(exercise_id)) / least
        words = _("passed: it moves {value:.2f} times the least bytes").format(value=moved)
        return Bar(_(_OWN_NAME), [(0.0, "ink")], words)
    except CourseError as problem:
        return Bar(_(_OWN_NAME), [(0.0, "ink")], str(problem))


def _has_passed(exercise_id: str) -> bool:
    return progress.record(exercise_id).last.get("status") == PASS


@functools.cache
def _measure_pass_us() -> float:
    """Measure on this GPU, once per process, the microseconds of one pass: half of a copy's."""
    return norm_times(COLUMNS).copy_us(COLUMNS) / 2


def _make_bar(name: str, value: float, words: str, colour: str) -> Bar:
    return Bar(name, [(value, colour)], words.format(value=value))
