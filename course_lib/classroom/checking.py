"""The check of one file in a worker. Request and answer are plain data, so the worker may be
another process or another machine."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from course_lib import __version__, catalog
from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.files import TemporaryFolder
from course_lib.base.installation import environment_fault, find_version
from course_lib.base.translation import gettext as _
from course_lib.grading.check import check
from course_lib.grading.verdict import Verdict

if TYPE_CHECKING:
    from course_lib.grading.judging.judge import Judged

# the packages that can change a verdict; a change to the rest of the course does not make a class
# be checked again
_ROOMS = (
    "base",
    "catalog",
    "compiler",
    "grading",
    "interpreter",
    "kernels",
    "launching",
    "norms",
    "sandbox",
    "tuning",
)
# of the exercises; a known mistake in wrong.toml decides which line is marked
_OF_EXERCISES = ("*.py", "*/cases.py", "*/exercise.toml", "*/wrong.toml")


@dataclass(frozen=True)
class Request:
    """A file to check. ``tier`` is the least isolation, ``mode`` is "cpu" or "gpu", ``version`` is
    that of the asking machine's grader."""

    exercise: str
    data: bytes
    secret: bytes
    tier: str
    mode: str
    version: str


@dataclass(frozen=True)
class FileAnswer:
    """The answer to a request.

    ``verdict`` is :meth:`Verdict.as_dict` without its seconds. It is None if this machine could not
    check the file; then ``fault`` explains why.
    """

    verdict: dict[str, Any] | None
    seconds: float = 0.0
    fault: str = ""


def check_request(
    request: Request, take_cases: Callable[[list[Judged]], None] | None = None
) -> FileAnswer:
    """Check one file as ``course check --secret-file`` does. Faults of the submission or of the
    machine become part of the answer. ``take_cases`` is that of :func:`check`."""
    started = time.monotonic()
    if request.version != grader_version():
        return FileAnswer(
            None,
            fault=(
                _(
                    "this worker has another version of the course, PyTorch or Triton than the"
                    " machine that asks. Install the same on both, then start the worker again."
                )
            ),
        )
    exercise = catalog.get(request.exercise)
    try:
        with TemporaryFolder("course-check-") as folder:
            # Use the course's own file name, so that equal files of two learners have equal
            # verdicts.
            file = folder / f"{exercise.file}.py"
            file.write_bytes(request.data)
            folder_name = f"{paths.shown(folder)}/"
            verdict = check(
                exercise, file, mode=request.mode, secret=request.secret,
                required_tier=request.tier, take_cases=take_cases,
            )  # fmt: skip
    except EnvironmentFault as fault:
        return FileAnswer(None, time.monotonic() - started, str(fault))
    except OSError as error:
        if (fault := environment_fault(error)) is None:
            raise
        return FileAnswer(None, time.monotonic() - started, str(fault))
    plain = _forget_folder(verdict, folder_name).as_dict()
    del plain["seconds"]
    return FileAnswer(plain, round(time.monotonic() - started, 3))


def _forget_folder(verdict: Verdict, folder: str) -> Verdict:
    """Return the verdict without the name of the temporary folder, which differs from check to
    check."""
    place = verdict.place and replace(verdict.place, file=verdict.place.file.replace(folder, ""))
    return replace(
        verdict,
        message=verdict.message.replace(folder, ""),
        headline=verdict.headline.replace(folder, ""),
        place=place,
    )


def make_key(exercise: str, data: bytes, setting: str) -> str:
    """Return the journal's key of a verdict. It depends on the exercise, the file, and ``setting``,
    the names of grader and cases."""
    digest = hashlib.sha256()
    for part in (exercise.encode(), setting.encode(), data):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@functools.cache
def grader_version() -> str:
    """Return a hash of everything that can change a verdict: grading code, exercises, PyTorch,
    Triton, NumPy, Python's minor version."""
    digest = hashlib.sha256()
    packages = {name: find_version(name) or "none" for name in ("torch", "triton", "numpy")}
    # all builds of a version compute the same on the CPU
    packages["torch"] = packages["torch"].partition("+")[0]
    digest.update(json.dumps([__version__, platform.python_version_tuple()[:2], packages]).encode())
    files = [
        file
        for room in _ROOMS
        for suffix in ("*.py", "*.toml")
        for file in (paths.PACKAGE / room).rglob(suffix)
    ]
    files += [file for name in _OF_EXERCISES for file in paths.EXERCISE_FOLDERS.glob(name)]
    for file in sorted([*files, *paths.SOLUTIONS.glob("ex*.py")]):
        # Do not hash the path from the root: in an installed package the solutions lie in another
        # place than in a checkout.
        digest.update(
            f"{file.parent.name}/{file.name}\0".encode()
            + hashlib.sha256(file.read_bytes()).digest()
        )
    return digest.hexdigest()[:16]
