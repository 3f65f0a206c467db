"""Keeps what a check that went wrong printed, for whoever looks into it: one file an exercise, in the state folder."""

from __future__ import annotations

from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.base.text import make_visible, shorten

_MOST_CHARACTERS = 64 << 10
_LAST = 12  # lines, where the file cannot be written


def keep_fault(exercise_id: str, text: str) -> tuple[str, str]:
    """Save ``text``, or the beginning and the end of a long one, in place of what was kept for the exercise before.

    Returns the file as a person knows it, and ""; or, where it cannot be saved, "" and the text's last lines.
    """
    text = shorten(make_visible(text), _MOST_CHARACTERS)
    file = paths.state() / "faults" / f"{exercise_id}.txt"
    try:
        write_atomic(file, text)
    except OSError:
        return "", "\n".join(text.splitlines()[-_LAST:])
    return paths.shown(file), ""
