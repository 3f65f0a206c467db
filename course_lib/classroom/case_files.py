"""The files of one case: its inputs, the expected and the returned results, and what is needed to
run it again.

Numbers lie in ``.npz`` files, which NumPy reads without running code; all else is JSON. bf16, which
``.npz`` does not know, is written as fp32, which holds the same values.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from course_lib import catalog
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.classroom.checking import grader_version
from course_lib.classroom.out_folder import open_replacement, write_lines
from course_lib.grading import replay
from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging import wording
from course_lib.grading.judging.judge import Judged

CASE, SCRIPT = "case.json", "run_case.py"
INPUTS, EXPECTED, ALLOWED, GOT = "inputs.npz", "expected.npz", "allowed.npz", "got.npz"
_SCRIPT = '''\
"""Run the case of this folder on the file beside this script, or on another one:

    python run_case.py [FILE]

It needs the Python of the course. The file runs as confined as it did when it was marked.
"""

import sys
from pathlib import Path

from course_lib.classroom.case_files import run_case

sys.exit(run_case(Path(__file__).parent, *map(Path, sys.argv[1:])))
'''


def write_case(folder: Path, exercise: catalog.Exercise, judged: Judged, tier: str) -> list[str]:
    """Write the files of a case that was run in ``tier``, and return their names. ``got.npz`` is
    missing if the case did not finish.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    plan = judged.plan
    _write_arrays(folder / INPUTS, replay.read_inputs(plan))
    _write_arrays(folder / EXPECTED, {n: e.values for n, e in plan.expected.items()})
    _write_arrays(folder / ALLOWED, {n: e.allowed for n, e in plan.expected.items()})
    if judged.outputs:
        _write_arrays(folder / GOT, judged.outputs)
    content = {
        "exercise": exercise.id,
        "grader": grader_version(),
        "tier": tier,
        "words": plan.case.describe(),
        **replay.describe_plan(plan),
    }
    write_lines(folder / CASE, [json.dumps(content, indent=1) + "\n"])
    write_lines(folder / SCRIPT, [_SCRIPT])
    return [CASE, INPUTS, EXPECTED, ALLOWED, *([GOT] if judged.outputs else []), SCRIPT]


def remove_case(folder: Path) -> None:
    """Remove the files that :func:`write_case` wrote into a folder before."""
    for name in (CASE, INPUTS, EXPECTED, ALLOWED, GOT, SCRIPT):
        (folder / name).unlink(missing_ok=True)


def _write_arrays(file: Path, arrays: replay.Arrays) -> None:
    packed = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
    np.savez_compressed(packed, **named)
    with open_replacement(file) as out:
        out.write(packed.getvalue())


def _read_arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def read_case(folder: Path) -> tuple[dict[str, Any], Plan]:
    """Return the content of ``case.json`` and the plan that :func:`write_case` wrote.

    Raises: CourseError if the files are damaged, or of a version of the course whose cases have
    another form.
    """
    try:
        content = json.loads((folder / CASE).read_text(encoding="utf-8"))
        arrays = (_read_arrays(folder / name) for name in (INPUTS, EXPECTED, ALLOWED))
        plan = replay.rebuild_plan(catalog.get(content["exercise"]), content, *arrays)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CourseError(
            _(
                "the case in {folder} cannot be read ({error}): a file is missing or was changed,"
                " or the course has another version. `course grade OUT --show LEARNER EXERCISE`"
                " writes it anew."
            ).format(folder=paths.shown(folder), error=error)
        ) from None
    return content, plan


def run_case(folder: Path, file: Path | None = None) -> int:
    """Run the case in ``folder`` on a file and print what comes out; return 0 if it is right, 1 if
    it is wrong, 3 if it cannot be run.

    Args:
        folder: the folder that :func:`write_case` wrote.
        file: the file to run; None takes the file of the exercise in ``folder``.
    """
    try:
        content, plan = read_case(folder)
        exercise = catalog.get(content["exercise"])
        file = file or folder / f"{exercise.file}.py"
        mode = runtime.current().mode
        judged, ended = replay.run_file(exercise, file, plan, mode, content["tier"])
    except (CourseError, EnvironmentFault) as error:
        print(f"course: {error}", file=sys.stderr)
        return 3
    if judged is None:
        not_run = _("{file} was not run: {reason}").format(file=file.name, reason=ended)
        print(f"course: {not_run}", file=sys.stderr)
        return 3
    print(f"{exercise.id}, {content['words']}\n  {_describe_result(judged, ended)}")
    if content["grader"] != grader_version():
        print(_("The course has another version than the one that wrote this folder."))
    return 0 if judged.passed else 1


def _describe_result(judged: Judged, ended: str) -> str:
    if judged.passed:
        return _("right")
    if judged.raised:
        error = f"{judged.raised.type}: {judged.raised.text}"
        if not judged.raised.line:
            return error
        return _("line {line}: {error}").format(line=judged.raised.line, error=error)
    if judged.ran:
        return wording.describe_finding(judged).words
    return _("it did not finish: {reason}").format(reason=ended)
