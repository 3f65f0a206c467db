"""Run a kernel on any cases, outside of a check. The cases are judged one by one, and there is no
verdict."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from course_lib.catalog import Exercise
from course_lib.exercises import find_parts
from course_lib.grading import warming
from course_lib.grading.cases.case import Case
from course_lib.grading.execution import runner
from course_lib.grading.judging.judge import Judged
from course_lib.grading.running import describe_not_started, judge_run
from course_lib.grading.submission import reader


def run_cases(exercise: Exercise, text: str, name: str, cases: Sequence[Case]) -> list[Judged]:
    """Run the ``text`` of a file on each case and judge it, in CPU mode, in the same confined
    processes as a check.

    The numbers of a case follow from its name. ``name`` is the file's name, for messages. If a case
    did not finish, its ``ran`` is False. If it raised nothing either, it was stopped, or this
    machine had no room for it.

    Raises: Unreadable if the text cannot be parsed, or lacks the entry point; EnvironmentFault if
    this machine cannot run it.
    """
    warming.prepare("cpu")
    kernels = reader.read(exercise, text, name)
    if kernels is None:
        raise ValueError(f"{name} is {exercise.id} as the course wrote it: there is nothing to run")
    ((entry_point, part),) = find_parts(exercise).items()
    plans = [part.planner(case, entry_point, _generator(case)) for case in cases]
    run = runner.run(kernels, plans, "cpu")
    if run.ended == "not started":
        raise describe_not_started(run)
    return judge_run(plans, run)


def _generator(case: Case) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([0, zlib.crc32(case.name.encode())]))
