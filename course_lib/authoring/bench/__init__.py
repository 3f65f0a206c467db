"""Measurements that only authors take: ``plane`` finds expensive shapes, ``counters`` reads the
hardware's counters, ``field`` has all other libraries, ``lock_race`` counts the wrong runs of a
locked sum, ``goals`` compares with the goals.

python -m course_lib.authoring.bench.plane               measures on this machine's GPU, saves, prints the table
python -m course_lib.authoring.bench.plane --stored      prints the newest stored measurement
python -m course_lib.authoring.bench.goals               compares the stored measurements with the goals
"""  # noqa: E501

from __future__ import annotations

import sys
from collections.abc import Callable

from course_lib.base.errors import CourseError
from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement


def run_as_script(
    kind: str, measure: Callable[[], Measurement], table: Callable[[Measurement], str]
) -> None:
    """Measure, save and print the table; with ``--stored`` on the command line, print that of the
    newest stored measurement."""
    try:
        if sys.argv[1:] == ["--stored"]:
            measured = measurement.stored(kind)
        else:
            measured = measure()
            print(f"saved to {measured.save()}")
    except CourseError as error:
        sys.exit(f"course: {error}")
    print(table(measured))
