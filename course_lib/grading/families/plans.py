"""Every case of an exercise, concrete, from the family it belongs to."""

from __future__ import annotations

import zlib

import numpy as np

from course_lib.catalog import Exercise
from course_lib.grading.cases.hidden import Secret, draw_hidden_case
from course_lib.grading.cases.plan import Plan
from course_lib.grading.families import find_parts


def make_plans(exercise: Exercise, seed: int = 0, secret: Secret | None = None) -> list[Plan]:
    """The cases of every entry point, in order. The same seed, or secret and seed, gives the same bytes on every machine."""
    made = []
    for entry_point, part in find_parts(exercise).items():
        for case in part.battery:
            if secret is None:
                rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(case.name.encode())]))
                made.append(part.planner(case, entry_point, rng))
            else:
                purpose = f"{exercise.id} {entry_point} {case.name}"
                drawn = draw_hidden_case(case, secret.generator(f"shape: {purpose}"))
                made.append(part.planner(drawn, entry_point, secret.generator(f"values: {purpose}: {seed}")))
    return made
