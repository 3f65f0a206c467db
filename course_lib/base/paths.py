"""Where the parts of a checkout lie. Everything that opens a file of the course asks here.

Two environment variables move things, so that tests never touch a learner's work:
``COURSE_EXERCISES`` the folder with the learner's files, ``COURSE_STATE`` the folder with progress and kept copies.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOLUTIONS = ROOT / "solutions"
NOTEBOOKS = ROOT / "notebooks"
NOTEBOOK_SOURCES = NOTEBOOKS / "source"
BENCH_RESULTS = ROOT / "course_lib" / "bench" / "results"


def exercises() -> Path:
    """The folder with the learner's exercise files."""
    return Path(os.environ.get("COURSE_EXERCISES") or ROOT / "exercises").resolve()


def state() -> Path:
    """The git-ignored folder with progress, last verdicts and kept copies of learners' files."""
    return Path(os.environ.get("COURSE_STATE") or ROOT / ".course").resolve()


def shown(path: Path) -> str:
    """``path`` as a person at the checkout knows it: relative to the checkout, wherever tests and builds put the two folders."""
    path = Path(path).resolve()
    for folder, name in ((exercises(), "exercises"), (state(), ".course"), (ROOT, ".")):
        if path.is_relative_to(folder):
            return str(Path(name) / path.relative_to(folder))
    return str(path)


def located(name: str) -> Path:
    """The path that :func:`shown` gave as ``name``."""
    first, *rest = Path(name).parts
    folder = {"exercises": exercises(), ".course": state()}.get(first)
    return folder.joinpath(*rest) if folder else ROOT / name
