"""What the grader knows of each exercise, a file a family: batteries, plans, wrong formulas.

A new exercise is a ``Part`` for each of its entry points in the ``EXERCISES`` of a family. Nothing else of the grader
knows any exercise.
"""

from __future__ import annotations

from course_lib.catalog import Exercise
from course_lib.grading.cases.plan import Part
from course_lib.grading.families import (
    autograd,
    copying,
    dw_kernels,
    dx_kernels,
    layer_norm,
    normalisation,
    reductions,
    rms_norm,
    statistics_kernels,
    vjps,
)
from course_lib.grading.families import (
    statistics_functions as statistics,
)

_FAMILIES = (
    copying,
    normalisation,
    layer_norm,
    rms_norm,
    vjps,
    statistics,
    reductions,
    statistics_kernels,
    dx_kernels,
    dw_kernels,
    autograd,
)


def parts(exercise: Exercise) -> dict[str, Part]:
    """The parts of ``exercise`` by entry point.

    Raises: LookupError if no family has it, ValueError if it has another number of parts than of entry points.
    """
    for family in _FAMILIES:
        if exercise.id in family.EXERCISES:
            return dict(zip(exercise.entry_points, family.EXERCISES[exercise.id], strict=True))
    raise LookupError(f"no family in course_lib/grading/families has exercise {exercise.id}")
