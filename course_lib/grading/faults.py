"""Store the output or traceback of a check that could not be completed, for a bug report: one file
per exercise, in the state folder."""

from __future__ import annotations

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.text import make_visible, shorten

_MOST_CHARACTERS = 64 << 10
_LAST = 12  # lines to return if the file cannot be written


def keep_fault(exercise_id: str, text: str) -> tuple[str, str]:
    """Save ``text`` in place of the text kept for this exercise before. Of a long text, save the
    beginning and the end.

    Returns: the file's path as messages show it, and ""; if it cannot be saved, "" and the text's
    last lines.
    """
    text = shorten(make_visible(text), _MOST_CHARACTERS)
    try:
        file = paths.state() / "faults" / f"{exercise_id}.txt"
        write_atomic(file, text)
    except (OSError, CourseError):  # a full disk, or a class is graded outside of any course folder
        return "", "\n".join(text.splitlines()[-_LAST:])
    return paths.shown(file), ""
