"""Keeps what a check that went wrong printed, for whoever looks into it: one file an exercise, in the state folder."""

from __future__ import annotations

from course_lib.base import paths
from course_lib.base.files import write_atomic

_LAST = 12  # lines, where the file cannot be written


def keep_fault(exercise_id: str, text: str) -> tuple[str, str]:
    """Save ``text``. Returns the file as a person knows it, and ""; or, where it cannot be saved, "" and the text's last lines."""
    file = paths.state() / "faults" / f"{exercise_id}.txt"
    try:
        write_atomic(file, text)
    except OSError:
        return "", "\n".join(text.splitlines()[-_LAST:])
    return paths.shown(file), ""
