"""The cases that kill each wrong solution: those on which it fails with its cause, chosen as few
and small as they can be.

The numbers of these cases stand in ``tests/killing_cases.json``. A wrong solution that is
not in that file needs the whole check: it does not get as far as a case, it ends the process, only
the compiler or the second run refuses it, or its cause shows only in the whole battery. ``python -m
course_lib.authoring.killing_cases [ID ...]`` finds the cases anew. Nothing depends on the file but
the time of the tests: where its cases no longer give the cause, the tests run the whole check.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator, Sequence

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.catalog import Exercise, mutants
from course_lib.grading.cases.plan import Plan
from course_lib.grading.execution.runner import Run
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind
from course_lib.grading.plans import make_plans
from course_lib.grading.running import Running, forget_unwritten, judge_run
from course_lib.grading.submission import attempt
from course_lib.grading.submission.source import Unreadable
from course_lib.grading.verdict import Verdict
from course_lib.grading.writer import VerdictWriter

FILE = paths.ROOT / "tests" / "killing_cases.json"
_NAME = "mine.py"  # the name of the wrong solution's file in messages


def read_killing_cases() -> dict[str, dict[str, list[int]]]:
    """Return the numbers of the kept cases by exercise and wrong solution; an empty dictionary if
    none are kept."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def check_on_cases(exercise: Exercise, entry: dict, numbers: Sequence[int]) -> Verdict:
    """Return the verdict on a wrong solution from these cases of the learner's check, in CPU mode,
    without a smaller case to show.

    Raises: IndexError if the exercise has fewer cases; CourseError if an edit does not fit the
    solution; Unreadable if its text cannot be graded.
    """
    plans = _list_plans(exercise.id)
    chosen = [plans[number] for number in numbers]
    text = mutants.make_text(exercise, entry)
    run, judged = _run(exercise, text, chosen)
    return _write_verdict(exercise, text, run, judged)


def find_killing_cases(exercise: Exercise, entry: dict) -> list[int]:
    """Return the numbers of the fewest and smallest cases that prove the cause of a wrong solution;
    an empty list if none do.

    The whole battery runs once. Then the verdict is written from a few of its judged cases after
    another, until it names the cause.
    """
    expected = entry.get("cause_cpu", entry["cause"])
    text = mutants.make_text(exercise, entry)
    try:
        run, judged = _run(exercise, text, _list_plans(exercise.id))
    except Unreadable:
        return []
    if (
        run.case is not None
        or run.import_error is not None
        or find_kind(exercise.kind).counts_parts
    ):
        return []
    for numbers in _list_choices(judged):
        part = Run(
            run.ended, errors={at: run.errors[n] for at, n in enumerate(numbers) if n in run.errors}
        )
        verdict = _write_verdict(exercise, text, part, [judged[n] for n in numbers])
        if (
            not verdict.passed
            and verdict.cause == expected
            and check_on_cases(exercise, entry, numbers).cause == expected
        ):
            return numbers
    return []


def _list_choices(judged: list[Judged]) -> Iterator[list[int]]:
    """Yield lists of case numbers, the cheapest first: a few failing cases, then more and more
    cases of all kinds."""
    whole = [n for n, j in enumerate(judged) if not j.plan.sample]
    by_cost = sorted(whole, key=lambda n: _estimate_cost(judged[n].plan))
    failing = [n for n in by_cost if not judged[n].passed]
    for count in (2, 4):
        yield sorted(failing[:count])
    for count in range(2, len(by_cost) + 1):
        yield sorted(by_cost[:count])


def _estimate_cost(plan: Plan) -> int:
    """Return a number that grows with the time that the interpreter takes for a case."""
    blocks = -(-plan.case.N // plan.case.block) if plan.case.block else 1
    return (plan.nbytes // 64 + 100 * blocks * max(1, plan.case.M)) * max(1, plan.interleavings)


@functools.cache
def _list_plans(exercise_id: str) -> list[Plan]:
    return make_plans(catalog.get(exercise_id), seed=0)


def _run(exercise: Exercise, text: str, plans: list[Plan]) -> tuple[Run, list[Judged]]:
    mode = find_kind(exercise.kind).base_mode.name
    run = Running(attempt.extract(exercise, text, _NAME), mode).run(plans)
    judged = judge_run(plans, run)
    forget_unwritten(judged)
    return run, judged


def _write_verdict(exercise: Exercise, text: str, run: Run, judged: list[Judged]) -> Verdict:
    mode = find_kind(exercise.kind).base_mode.name
    return VerdictWriter(exercise, _NAME, text, judged, run, mode, hidden=False).write()


def _write(numbers_by_exercise: dict[str, dict[str, list[int]]]) -> None:
    lines = (
        f"{json.dumps(exercise)}: {json.dumps(cases)}"
        for exercise, cases in sorted(numbers_by_exercise.items())
    )
    write_atomic(FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def main(argv: list[str]) -> int:
    chosen = [catalog.get(exercise) for exercise in argv] or list(catalog.exercises().values())
    numbers_by_exercise = read_killing_cases() if argv else {}
    for exercise in chosen:
        entries = [entry for entry in mutants.read_mutants(exercise) if not entry.get("slow")]
        cases = {entry["id"]: find_killing_cases(exercise, entry) for entry in entries}
        numbers_by_exercise[exercise.id] = {
            name: numbers for name, numbers in sorted(cases.items()) if numbers
        }
        print(
            f"{exercise.id}: {len(numbers_by_exercise[exercise.id])} of {len(entries)} wrong"
            " solutions need a few cases only",
            flush=True,
        )
        _write(numbers_by_exercise)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
