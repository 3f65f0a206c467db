"""What a file's text holds for an exercise: nothing yet, or code. Run on texts that may be hostile: see ``reader.py``."""

from __future__ import annotations

from typing import Any

from course_lib.catalog import Exercise
from course_lib.grading.submission import extract_functions, extract_kernels, needed
from course_lib.grading.submission.extract_kernels import Kernels, Unreadable, check_imports, parse

_NEEDED = {
    "kernel": "A kernel needs only `import triton` and `import triton.language as tl`; remove the line.",
    "numpy": "This exercise needs only `import numpy as np`; remove the line.",
}


def read_attempt(exercise: Exercise, unsolved: str, text: str, name: str) -> Kernels | None:
    """The code of the exercise's entry points, and what it needs, out of ``text``; None while the file is as the course wrote it.

    Args:
        unsolved: the exercise's file as the course wrote it. Comments, docstrings and layout are not code.

    Raises: Unreadable if the text does not parse, or lacks an entry point.
    """
    if fingerprint(exercise, text, name) == fingerprint(exercise, unsolved, exercise.file):
        return None
    return extract(exercise, text, name)


def fingerprint(exercise: Exercise, text: str, name: str) -> str:
    """A fingerprint of the code: docstrings, comments, layout and ``pass`` leave it as it is, code changes it.

    Raises: Unreadable as :func:`extract`.
    """
    find = extract_kernels.fingerprint if exercise.kind == "kernel" else extract_functions.fingerprint
    try:
        return find(text, name, exercise.entry_points)
    except Unreadable:  # it may have its entry points in a form of its own, which the course's file has not
        return needed.cut(parse(text, name), text, name, exercise.entry_points, exercise.kind)


def extract(exercise: Exercise, text: str, name: str) -> Kernels:
    """The code of the exercise's entry points, and what it needs, out of ``text``.

    Raises: Unreadable if it is not there.
    """
    tree = parse(text, name)
    check_imports(tree, name, _NEEDED.get(exercise.kind, "This exercise needs only `import torch`; remove the line."))
    source = needed.cut(tree, text, name, exercise.entry_points, exercise.kind)
    rules = {
        "kind": exercise.kind, "forbidden": dict(exercise.forbidden), "file": name, "unlisted": _find_unlisted(exercise, text, name),
    }  # fmt: skip
    return Kernels(source, exercise.entry_points, rules)


def _find_unlisted(exercise: Exercise, text: str, name: str) -> dict[str, Any] | None:
    """Where the file leaves the lists of names that are safe to run without a sandbox, and how."""
    try:
        if exercise.kind == "kernel":
            extract_kernels.extract(text, name, exercise.entry_points)
        else:
            extract_functions.extract(text, name, exercise.entry_points, exercise.kind, exercise.forbidden)
    except Unreadable as unlisted:
        return describe_refusal(unlisted)
    return None


def describe_refusal(refused: Unreadable) -> dict[str, Any]:
    """An Unreadable as plain data."""
    span = refused.span and refused.span._asdict()
    return {"cause": refused.cause, "message": str(refused), "what": refused.what, "span": span}
