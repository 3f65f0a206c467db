"""The exceptions that people are meant to read."""

from __future__ import annotations

import errno
import sys
import traceback
from pathlib import Path

from course_lib.base.text import make_visible, shorten

_MOST_CHARACTERS = 4000


class CourseError(Exception):
    """What happened, where, and what to do, in words. Shown without a traceback by the command line and the panels.

    Its text may quote a file's name or what a program printed: nothing in it is obeyed, and it is no longer than a page.
    """

    def __str__(self) -> str:
        return shorten(make_visible(super().__str__()), _MOST_CHARACTERS)


class EnvironmentFault(CourseError):
    """The machine, the installation or a setting does not let the course work: neither the learner's code nor the course
    is wrong. The message names what was found, and the remedy."""


_PACKAGES = {"torch": "PyTorch", "triton": "Triton", "numpy": "NumPy"}
_REMEDIES = {
    errno.ENOSPC: "Free some space (`df -h` shows where), then try again.",
    errno.EDQUOT: "Your quota on this disk is used up: delete something, then try again.",
    errno.EROFS: "This disk is mounted for reading only. Set TMPDIR and COURSE_STATE to folders that you can write to.",
    errno.EACCES: "Look at who may write there, or set TMPDIR and COURSE_STATE to folders that you can write to.",
    errno.EPERM: "This machine does not permit it. `course doctor` says what it permits.",
    errno.ENOMEM: "Close other programs, or take a machine with more memory, then try again.",
    errno.EAGAIN: "No more processes may be started (`ulimit -u` shows how many): end some, then try again.",
    errno.EMFILE: "Too many files are open in this process (`ulimit -n` shows how many may be): restart it, then try again.",
    errno.ENFILE: "Too many files are open on this machine: end some programs, then try again.",
}


def environment_fault(error: BaseException) -> EnvironmentFault | None:
    """What ``error`` says about the machine or the installation, with the remedy; None if it says nothing about them.

    A full disk, too little memory or a missing permission is the machine's; an import that fails outside ``course_lib`` is
    the installation's. Everything else may be a bug of the course.
    """
    if isinstance(error, EnvironmentFault):
        return error
    if isinstance(error, MemoryError):
        return EnvironmentFault(f"this machine has not enough memory. {_REMEDIES[errno.ENOMEM]}")
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        where = f": {error.filename}" if error.filename else ""
        return EnvironmentFault(f"this machine says: {error.strerror}{where}. {_REMEDIES[error.errno]}")
    return import_fault(error)


def missing_package(package: str) -> EnvironmentFault:
    """A package that the course itself needs is not there; ``package`` as one imports it."""
    return EnvironmentFault(
        f"{_PACKAGES.get(package, package)} is not installed for the Python that runs the course. {_install_again()}"
    )


def import_fault(error: BaseException) -> EnvironmentFault | None:
    """The fault, if ``error`` ended an import of something that is not the course's; else None."""
    foreign = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.name == "<module>" and not frame.filename.startswith("<") and not _is_ours(frame.filename)
    ]
    if isinstance(error, SyntaxError) and error.filename and not _is_ours(error.filename):
        foreign.append((error.filename, error.lineno))
    if not foreign:
        if isinstance(error, ModuleNotFoundError) and error.name and error.name.split(".")[0] != "course_lib":
            return missing_package(error.name.split(".")[0])
        return None
    imported, (file, line) = _package_of(foreign[0][0]), foreign[-1]
    said = (str(error).strip().splitlines() or [""])[0]
    what = (
        f"{_PACKAGES.get(imported, imported)} cannot be imported: {type(error).__name__}: {said} ({file}, line {line})."
    )
    if not Path(foreign[0][0]).resolve().is_relative_to(Path(sys.prefix).resolve()):
        return EnvironmentFault(
            f"{what} That is not the {imported} that the course installed: another one stands before it on Python's path. "
            f"`unset PYTHONPATH`, or move {foreign[0][0]} away."
        )
    return EnvironmentFault(f"{what} {_install_again()}")


def _install_again() -> str:
    return f"`make clean`, then `make lab`, installs it anew; `course doctor` says what else is missing. (This Python is {sys.executable}.)"


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(Path(__file__).parent.parent)


def _package_of(file: str) -> str:
    """``torch`` of ``.../site-packages/torch/_C/x.py`` and of ``/anywhere/torch.py``."""
    path = Path(file)
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1].removesuffix(".py")
    return path.parent.name if path.stem == "__init__" else path.stem
