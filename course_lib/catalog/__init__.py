"""The exercises: the facts of each (its catalog file), the text that it is cut to, and the solution it is cut from."""

from course_lib.catalog.exercise import KINDS, Exercise, exercises, get

__all__ = ["KINDS", "Exercise", "exercises", "get"]
