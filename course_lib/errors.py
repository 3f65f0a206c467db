"""The one exception that people are meant to read."""

from __future__ import annotations


class CourseError(Exception):
    """What happened, where, and what to do, in words. Shown without a traceback by the command line and the panels."""
