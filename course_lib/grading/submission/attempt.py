"""What a file's text holds for an exercise: nothing yet, or code. Run on texts that may be hostile: see ``reader.py``."""

from __future__ import annotations

import ast
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


def read_step(exercise: Exercise, unsolved: str, text: str, name: str, given: str) -> Kernels | None:
    """The code of a step's entry point, and what it needs, out of the ``text`` of a cell; None while that is as the course wrote it.

    Args:
        given: imports that the cell may count on, without having them in its lines.

    Raises: Unreadable if the text does not parse, or lacks the entry point.
    """
    tree = parse(text, name)
    if _normalise(_cut_needed(exercise, unsolved, exercise.file)) == _normalise(_cut_needed(exercise, text, name)):
        return None
    needed_source = needed.cut(tree, text, name, exercise.entry_points, exercise.kind)
    check_imports(parse(needed_source, name), name, "The imports that a step needs are made for it; remove the line.")
    rules = {"kind": exercise.kind, "forbidden": {}, "file": name, "given": given}
    return Kernels(
        needed_source, exercise.entry_points, rules | {"unlisted": _find_unlisted_in_step(exercise, text, name, given)}
    )


def _cut_needed(exercise: Exercise, text: str, name: str) -> str:
    """The entry point and what it needs; all of the text where there is no entry point in it."""
    tree = parse(text, name)
    try:
        return needed.cut(tree, text, name, exercise.entry_points, exercise.kind)
    except Unreadable:
        return text


def _normalise(code: str) -> str:
    """The code's syntax tree, without docstrings and ``pass``."""

    class Strip(ast.NodeTransformer):
        def visit_Pass(self, node: ast.Pass) -> None:
            return None

        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            return None if isinstance(node.value, ast.Constant) else node

    return ast.dump(Strip().visit(ast.parse(code)))


def _find_unlisted_in_step(exercise: Exercise, text: str, name: str, given: str) -> dict[str, Any] | None:
    """As :func:`_find_unlisted`, with what is given above the text, and the lines of the text itself."""
    said = _find_unlisted(exercise, f"{given}\n{text}", name)
    if said is None or said["span"] is None:
        return said
    span = said["span"] | {"line": said["span"]["line"] - given.count("\n") - 1}
    return said | {"span": span, "message": f"{name}, line {span['line']}: {said['what']}"}


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
