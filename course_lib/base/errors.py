"""The exceptions that people are meant to read."""

from __future__ import annotations

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
    is wrong. The message names what was found, and the remedy.

    ``printed``: all that a process printed which did not start, for a report to the authors.
    """

    def __init__(self, message: str, printed: str = ""):
        super().__init__(message)
        self.printed = printed
