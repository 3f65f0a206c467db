"""Where the parts of a checkout lie. Everything that opens a file of the course asks here.

Two environment variables move things, so that tests never touch a learner's work:
``COURSE_EXERCISES`` the folder with the learner's files, ``COURSE_STATE`` the folder with progress and kept copies.
"""

from __future__ import annotations

import os
from pathlib import Path

from course_lib.base.text import make_visible_line

ROOT = Path(__file__).resolve().parent.parent.parent
SOLUTIONS = ROOT / "solutions"
NOTEBOOKS = ROOT / "notebooks"
NOTEBOOK_SOURCES = NOTEBOOKS / "source"
RELEASED = (
    ROOT / "course_lib" / "catalog" / "released"
)  # in a learner's release, in place of the two above; see is_release()
BENCH_RESULTS = ROOT / "course_lib" / "bench" / "results"


def is_release() -> bool:
    """True in a copy that ``course release`` made: no solutions, no tests, nothing for authors and instructors."""
    return RELEASED.is_dir()


def exercises() -> Path:
    """The folder with the learner's exercise files."""
    return Path(os.environ.get("COURSE_EXERCISES") or ROOT / "exercises").resolve()


def state() -> Path:
    """The git-ignored folder with progress, last verdicts and kept copies of learners' files."""
    return Path(os.environ.get("COURSE_STATE") or ROOT / ".course").resolve()


def shown(path: Path) -> str:
    """``path`` as a person at the checkout knows it: relative to the checkout, wherever tests and builds put the two folders.

    A link keeps its own name, and what a terminal would obey in a name is made visible.
    """
    path = Path(path)
    path = path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name
    for folder, name in ((exercises(), "exercises"), (state(), ".course"), (ROOT, ".")):
        if path.is_relative_to(folder):
            path = Path(name) / path.relative_to(folder)
            break
    return make_visible_line(str(path))


def located(name: str) -> Path:
    """The path that :func:`shown` gave as ``name``."""
    first, *rest = Path(name).parts
    folder = {"exercises": exercises(), ".course": state()}.get(first)
    return folder.joinpath(*rest) if folder else ROOT / name
