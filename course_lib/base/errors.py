"""The exceptions whose messages people read."""

from __future__ import annotations

from course_lib.base.text import make_visible, shorten

_MOST_CHARACTERS = 4000


class CourseError(Exception):
    """An error whose message says what happened, where, and what to do.

    The command line and the panels show it without a traceback. The message may quote a file name
    or a program's output, so its control characters are made visible, and it is cut to about a
    page.
    """

    def __str__(self) -> str:
        return shorten(make_visible(super().__str__()), _MOST_CHARACTERS)


class EnvironmentFault(CourseError):
    """A machine, an installation or a setting that does not let the course work.

    Neither the learner's code nor the course is wrong. The message names what was found, and the
    remedy.

    Args:
        printed: all output of a process that did not start, for a report to the authors.
    """

    def __init__(self, message: str, printed: str = ""):
        super().__init__(message)
        self.printed = printed
