"""The exercises. Each has a folder with its facts; its text is cut out of its solution."""

from course_lib.catalog.exercise import KINDS, Exercise, exercises, find, get, required

__all__ = ["KINDS", "Exercise", "exercises", "find", "get", "required"]
