"""Chan's merge (04b): its cases."""

from __future__ import annotations

from course_lib.exercises.merging_functions import MERGE_TWO

PARTS = {"merge": MERGE_TWO}
