"""The learner's files: where they are, whether they were touched, and the only function that replaces one.

A file counts as untouched while it is byte for byte a text this course generated: the present one, or the one that
``exercises/manifest.json`` remembers from before an author's change.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, write_atomic
from course_lib.catalog import Exercise
from course_lib.catalog.texts import find_file, make_unsolved_text

MANIFEST = "manifest.json"


def is_untouched(path: Path, generated: str, remembered: dict[str, str]) -> bool:
    """True if ``path`` holds the generated text, or the generated text that the manifest remembers."""
    data = path.read_bytes()
    return data == generated.encode() or hashlib.sha256(data).hexdigest() == remembered.get(path.name)


def read_manifest(folder: Path) -> dict[str, str]:
    """SHA-256 of each generated file, by name; empty where there is no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        remembered = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(remembered, dict):
            raise ValueError("it is no object")
        return remembered
    except ValueError as broken:
        raise CourseError(
            f"{paths.shown(path)} is not valid JSON ({broken}). Take it back from git: `git checkout -- {paths.shown(path)}`."
        ) from broken


def write_manifest(folder: Path, texts: dict[str, str]) -> None:
    """Remember ``texts``. Write the files first: a crash in between then leaves them recognised as generated."""
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(texts.items())}
    write_atomic(folder / MANIFEST, json.dumps(hashes, indent=1) + "\n")


def has_work(exercise: Exercise) -> bool:
    """True if the learner's file is a plain file and differs from what the course wrote."""
    path = find_file(exercise)
    return path.is_file() and not path.is_symlink() and path.read_bytes() != make_unsolved_text(exercise).encode()


def reset(exercise: Exercise, now: datetime | None = None) -> Path | None:
    """Put the generated text back. A file that differs from it is copied first; returns the copy's path, or None.

    A link, or whatever else is no plain file, is replaced; what it led to stays as it was.

    Raises: OSError, with the learner's file as it was, if the copy or the new text cannot be written.
    """
    path, text = find_file(exercise), make_unsolved_text(exercise)
    copy = None
    if has_work(exercise):
        copy = keep_copy(path, paths.state() / "kept", now)
    write_atomic(path, text)
    return copy
