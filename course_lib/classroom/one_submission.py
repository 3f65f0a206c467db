"""The grading of a single submission on Gradescope or Classroom 50, with the result in that
system's format.

``run_autograder`` of ``course release --gradescope`` runs ``python -m
course_lib.classroom.one_submission gradescope``. ``autograder.py`` of ``course release
--classroom50`` runs it with ``classroom50 BUNDLE``. Sources of both formats, read on 2026-11-25:

- Gradescope's folders and ``results.json``:
  https://gradescope-autograders.readthedocs.io/en/latest/specs/
- Classroom 50's environment and ``result.json``:
  https://github.com/foundation50/classroom50/wiki/Advanced-Autograding
"""

from __future__ import annotations

import csv
import functools
import json
import math
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import TemporaryFolder, write_atomic
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.classroom import workers
from course_lib.classroom.grade_class import ClassOptions, grade_class
from course_lib.classroom.gradebook import NOT_GRADED, Mark, Row, format_points
from course_lib.classroom.journal import Journal
from course_lib.classroom.marking import Marker
from course_lib.classroom.out_folder import JOURNAL
from course_lib.classroom.record import read_record
from course_lib.classroom.reports import describe_mark
from course_lib.grading.verdict import PASS

SETTINGS, SECRET = "settings.json", "secret"
AUTOGRADER = Path("/autograder")
_NOT_YOURS = N_(
    "The course could not grade this. That is not your fault, and takes no points from you. Your"
    " teacher sees the reason."
)


@dataclass(frozen=True)
class Settings:
    """The exercises and rules of an assignment.

    They correspond to the options ``--only``, ``--weights``, ``--partial`` and ``--require-tier``
    of ``course grade``.
    """

    exercises: tuple[str, ...]
    weights: str | None = None
    partial: bool | None = None
    tier: str | None = None

    def write(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"


def read_settings(file: Path) -> Settings:
    """Return the settings that :meth:`Settings.write` wrote.

    Raises: OSError if the file cannot be read; ValueError, KeyError or TypeError if it has other
    content.
    """
    plain = json.loads(file.read_text(encoding="utf-8"))
    return Settings(**plain | {"exercises": tuple(plain["exercises"])})


def grade_submission(
    folder: Path, learner: str, settings: Settings, secret_file: Path | None
) -> Row:
    """Grade the files in ``folder`` as ``course grade`` grades a class of this one learner, with
    one worker.

    Args:
        learner: the learner's name. The hidden cases are derived from it and from the secret.
        secret_file: the file of the secret. If it is None, a new secret is made, and with it new
            hidden cases.

    Raises: the exceptions of :func:`grade_class`.
    """
    with TemporaryFolder("course-job-") as work:
        mapping, out = work / "learners.csv", work / "out"
        with mapping.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("learner", "path"), (learner, ".")])
        options = ClassOptions(
            settings.exercises, secret_file=secret_file, mapping=mapping, weights=settings.weights,
            partial=settings.partial, tier=settings.tier
        )  # fmt: skip
        # One worker: a container shows all processors of its host, but has memory for one.
        grade_class(folder, out, options, functools.partial(workers.start_processes, 1), 2)
        record = read_record(out)
        with Journal(out / JOURNAL) as journal:
            (row,) = (Marker(record, journal.get, {}).make_row(person) for person in record)
    return row


def describe_for_gradescope(row: Row, seconds: float) -> dict[str, Any]:
    """Return the content of ``results.json``. It gives the number of right hidden cases, but not
    the cases.

    An exercise that could not be graded has no score. Then the total is left out as well, and
    Gradescope adds up the other scores.
    """
    result: dict[str, Any] = {
        "execution_time": round(seconds),
        "output": _describe_files(row),
        # by default Gradescope renders HTML, and the learner chose the names of the files
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_describe_test(mark) for mark in row.marks],
    }
    if all(mark.points is not None for mark in row.marks):
        result["score"] = row.points
    return result


def _describe_files(row: Row) -> str:
    """Return the notes on the submission as a whole, one per line, without the reasons of single
    exercises."""
    stop = _(".")
    lines = [f"{note}{stop}" for note in row.other_notes]
    if row.problem:
        lines.insert(0, join_sentences(_("Nothing could be read."), f"{row.problem}{stop}"))
    return "\n".join(lines)


def _describe_test(mark: Mark) -> dict[str, Any]:
    exercise = catalog.get(mark.exercise)
    test = {
        "name": f"{exercise.id} {exercise.title}: {mark.status}",
        "output": describe_mark(mark, exercise),
        "visibility": "visible",
    }
    if mark.points is None:
        return test
    return test | {
        "score": mark.points,
        "max_score": mark.possible,
        "status": "passed" if mark.status == PASS else "failed",
    }


def run_gradescope(root: Path = AUTOGRADER) -> None:
    """Grade ``submission`` below ``root``. Write ``results/results.json`` in any case. Only the
    teacher sees the printed text.

    Raises: any exception of the grading, after a result that tells the learner that it is not the
    learner's fault.
    """
    started = time.monotonic()
    try:
        settings = read_settings(root / "source" / SETTINGS)
        learner = _read_learner(root / "submission_metadata.json")
        row = grade_submission(root / "submission", learner, settings, root / "source" / SECRET)
        result = describe_for_gradescope(row, time.monotonic() - started)
    except Exception:
        test = {
            "name": "Grading",
            "status": "failed",
            "output": _(_NOT_YOURS),
            "visibility": "visible",
        }
        _write_results(
            root, {"output": _(_NOT_YOURS), "stdout_visibility": "hidden", "tests": [test]}
        )
        raise
    _write_results(root, result)
    print("\n".join(_tell_teacher(row)))


def _read_learner(metadata: Path) -> str:
    """Return the sorted user numbers of a group's members as one name; "nobody" in a trial outside
    of Gradescope, without metadata."""
    if not metadata.exists():
        return "nobody"
    return " ".join(
        sorted(
            str(user["id"]) for user in json.loads(metadata.read_text(encoding="utf-8"))["users"]
        )
    )


def _write_results(root: Path, result: dict[str, Any]) -> None:
    write_atomic(
        root / "results" / "results.json", json.dumps(result, indent=2, ensure_ascii=False)
    )


def _tell_teacher(row: Row) -> list[str]:
    lines = [
        _("{learner}: {points} of {possible} points.").format(
            learner=row.learner,
            points=format_points(row.points),
            possible=format_points(row.possible),
        )
    ]
    lines += [
        _("{exercise}: not graded. {reason}").format(exercise=mark.exercise, reason=mark.reason)
        for mark in row.marks
        if mark.status == NOT_GRADED
    ]
    return (
        lines
        + [_("Odd: {words}").format(words=words) for words in row.oddities]
        + [_("Published: {words}").format(words=words) for words in row.published]
    )


def run_classroom50(bundle: Path, checkout: Path, environment: Mapping[str, str]) -> None:
    """Grade ``checkout`` by the settings in ``bundle``, and write ``result.json`` and
    ``release-body.md`` into ``checkout``.

    The bundle lies on a public page, so it has no secret, and each run makes new hidden cases. The
    student can read the printed text.

    Raises: EnvironmentFault if an exercise could not be graded. The exit code then tells Classroom
    50 that it was not the student's fault.
    """
    row = grade_submission(checkout, environment["OWNER"], read_settings(bundle / SETTINGS), None)
    if faults := [f"{mark.exercise}: {mark.reason}" for mark in row.marks if mark.points is None]:
        raise EnvironmentFault(
            _("not graded, and not the student's fault: {faults}").format(faults="; ".join(faults))
        )
    write_atomic(
        checkout / "result.json", json.dumps(describe_for_classroom50(row, environment), indent=2)
    )
    write_atomic(checkout / "release-body.md", "\n".join(_write_body(row)))


def describe_for_classroom50(row: Row, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of ``result.json``. Its points are whole numbers, so fractions are rounded
    down."""
    tests = [
        {
            "test-name": f"{mark.exercise} {catalog.get(mark.exercise).title}",
            "passed": mark.status == PASS,
            "score": math.floor(mark.points or 0),
            "max-score": math.floor(mark.possible),
        }
        for mark in row.marks
    ]
    return {
        "schema": "classroom50/result/v1",
        "classroom": environment["CLASSROOM"],
        "assignment": environment["ASSIGNMENT"],
        "assignment_type": environment["ASSIGNMENT_TYPE"],
        "owner": environment["OWNER"],
        "submission": environment["SUBMISSION_TAG"],
        "commit": environment["COMMIT_URL"],
        "release": environment["RELEASE_URL"],
        "review": environment.get("REVIEW_URL") or environment["COMMIT_URL"],
        # Classroom 50 replaces it by the commit's time
        "datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def _write_body(row: Row) -> Iterator[str]:
    """Yield the lines of a submission's Markdown page. The texts are indented, so that Markdown
    shows a learner's code unchanged."""
    points = _("{points} of {possible} points").format(
        points=format_points(row.points), possible=format_points(row.possible)
    )
    yield f"### {points}\n"
    if about := _describe_files(row):
        yield f"{textwrap.indent(about, '    ')}\n"
    for mark in row.marks:
        exercise = catalog.get(mark.exercise)
        yield f"**{exercise.id} {exercise.title}: {mark.status}**\n"
        yield f"{textwrap.indent(describe_mark(mark, exercise), '    ')}\n"


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["gradescope", *root]:
                run_gradescope(*map(Path, root))
            case ["classroom50", bundle]:
                run_classroom50(Path(bundle), Path.cwd(), os.environ)
            case _:
                raise CourseError(
                    _("{arguments} is not `gradescope` and not `classroom50 BUNDLE`.").format(
                        arguments=arguments
                    )
                )
    except (CourseError, EnvironmentFault) as error:
        # Print it on one line: it may contain a learner's text, and GitHub takes a line that begins
        # with :: for a command.
        print(f"course: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
