"""One file checked in a worker: bytes in, a plain verdict out, so that the worker may be another process or another machine."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform
import time
from dataclasses import dataclass, replace
from typing import Any

from course_lib import __version__, catalog
from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.files import TemporaryFolder
from course_lib.base.installation import environment_fault
from course_lib.grading.check import check
from course_lib.grading.verdict import Verdict

# what decides a verdict; the rest of the course may change without a class being checked again
_ROOMS = ("base", "catalog", "compiler", "grading", "interpreter", "kernels", "norms", "sandbox", "tuning")


@dataclass(frozen=True)
class Request:
    """A file to check. ``tier``: of isolation, at least; ``mode``: "cpu" or "gpu"; ``version``: of the grader that asks."""

    exercise: str
    data: bytes
    secret: bytes
    tier: str
    mode: str
    version: str


@dataclass(frozen=True)
class FileAnswer:
    """``verdict`` is :meth:`Verdict.as_dict` without its seconds; None where this machine did not let the file be checked, and then
    ``fault`` says why."""

    verdict: dict[str, Any] | None
    seconds: float = 0.0
    fault: str = ""


def check_request(request: Request) -> FileAnswer:
    """Check one file as ``course check --secret-file`` does. Raises nothing for what a submission or a machine does."""
    started = time.monotonic()
    if request.version != grader_version():
        return FileAnswer(
            None,
            fault="this worker has another version of the course, PyTorch or Triton than the machine that asks. "
            "Install the same on both, then start the worker again.",
        )
    exercise = catalog.get(request.exercise)
    try:
        with TemporaryFolder("course-check-") as folder:
            # the name that the course gave it, so that two people's equal files have equal verdicts
            file = folder / f"{exercise.file}.py"
            file.write_bytes(request.data)
            shown = f"{paths.shown(folder)}/"
            verdict = check(exercise, file, mode=request.mode, secret=request.secret, required_tier=request.tier)
    except EnvironmentFault as fault:
        return FileAnswer(None, time.monotonic() - started, str(fault))
    except OSError as error:
        if (fault := environment_fault(error)) is None:
            raise
        return FileAnswer(None, time.monotonic() - started, str(fault))
    plain = _forget_folder(verdict, shown).as_dict()
    del plain["seconds"]
    return FileAnswer(plain, round(time.monotonic() - started, 3))


def _forget_folder(verdict: Verdict, folder: str) -> Verdict:
    """The verdict without the folder that the file lay in while it was checked: that is another one each time."""
    place = verdict.place and replace(verdict.place, file=verdict.place.file.replace(folder, ""))
    return replace(verdict, message=verdict.message.replace(folder, ""), headline=verdict.headline.replace(folder, ""), place=place)


def make_key(exercise: str, data: bytes, setting: str) -> str:
    """What a verdict is kept under: the same file, checked by the same grader with the same cases. ``setting`` says the last two."""
    digest = hashlib.sha256()
    for part in (exercise.encode(), setting.encode(), data):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@functools.cache
def grader_version() -> str:
    """Changes with whatever could change a verdict: the grading code, the exercises, PyTorch, Triton, NumPy, Python's minor version."""
    digest = hashlib.sha256()
    packages = {name: _find_version(name) for name in ("torch", "triton", "numpy")}
    packages["torch"] = packages["torch"].partition("+")[0]  # one build computes on the CPU as the other does
    digest.update(json.dumps([__version__, platform.python_version_tuple()[:2], packages]).encode())
    files = [file for room in _ROOMS for suffix in ("*.py", "*.toml") for file in (paths.PACKAGE / room).rglob(suffix)]
    for file in sorted([*files, *paths.SOLUTIONS.glob("ex*.py")]):
        # not the path from the root: solutions lie in another place in an installed package than in a checkout
        digest.update(f"{file.parent.name}/{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _find_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
