"""The learner's files: whether they were changed, and the only function that replaces one.

A file counts as untouched while it is byte for byte a text that this course generated: the present
one, or the earlier one whose hash is in ``exercises/manifest.json``.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.catalog.texts import find_file, is_unsolved, make_learners_text

MANIFEST = "manifest.json"


def is_untouched(path: Path, generated: str, remembered: dict[str, str]) -> bool:
    """Return True if ``path`` holds the generated text, or a text whose hash is in the manifest."""
    data = path.read_bytes()
    return data == generated.encode() or hashlib.sha256(data).hexdigest() == remembered.get(
        path.name
    )


def read_manifest(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each generated file, by name; empty if there is no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        remembered = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(remembered, dict):
            raise ValueError(_("it is no object"))
        return remembered
    except ValueError as broken:
        raise CourseError(
            _(
                "{file} is not valid JSON ({broken}). Take it back from git: `git checkout --"
                " {file}`."
            ).format(file=paths.shown(path), broken=broken)
        ) from broken


def write_manifest(folder: Path, texts: dict[str, str]) -> None:
    """Write the hashes of ``texts``. Write the files first: if a crash comes in between, they are
    still recognised as generated."""
    hashes = {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(texts.items())
    }
    write_atomic(folder / MANIFEST, json.dumps(hashes, indent=1) + "\n")


def has_work(exercise: Exercise) -> bool:
    """Return True if the learner's file is a plain file and differs from the text that the course
    wrote."""
    path = find_file(exercise)
    return path.is_file() and not path.is_symlink() and not is_unsolved(exercise, path.read_bytes())


def reset(exercise: Exercise, now: datetime | None = None) -> Path | None:
    """Put the generated text back. A file that differs from it is copied first; return the copy's
    path, or None.

    A link or anything else that is no plain file is replaced; the target of a link stays as it was.

    Raises: OSError, with the learner's file as it was, if the copy or the new text cannot be
    written.
    """
    path, text = find_file(exercise), make_learners_text(exercise)
    copy = None
    if has_work(exercise):
        copy = keep_copy(path, paths.state() / "kept", now)
    write_atomic(path, text)
    return copy
