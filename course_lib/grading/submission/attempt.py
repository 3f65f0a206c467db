"""Find out whether a file's text has code for an exercise. The text may be hostile, so
``reader.py`` runs this in a sandbox."""

from __future__ import annotations

import ast
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.grading.submission import needed, oddities
from course_lib.grading.submission.source import Kernels, Unreadable, check_imports, parse


def read_attempt(
    exercise: Exercise, unsolved: str, text: str, name: str, given: str | None = None
) -> Kernels | None:
    """Return the code of the exercise's entry points, and what it needs, out of ``text``; None
    while the file is as the course wrote it.

    Args:
        unsolved: the exercise's file as the course wrote it. Comments, docstrings, imports and
            layout are not code.
        given: imports that are made for the cell of a step, so that its text need not have them;
            None for an exercise.

    Raises: Unreadable if the text does not parse, or lacks an entry point.
    """
    if _normalise(_cut_or_whole(exercise, unsolved, exercise.file)) == _normalise(
        _cut_or_whole(exercise, text, name)
    ):
        return None
    return extract(exercise, text, name, given)


def extract(exercise: Exercise, text: str, name: str, given: str | None = None) -> Kernels:
    """Return the same as :func:`read_attempt`, also for a file that is as the course wrote it."""
    tree = parse(text, name)
    if given is None:
        check_imports(tree, name, _describe_needed(exercise.kind))
    source = needed.cut(tree, text, name, exercise.entry_points, exercise.kind)
    if given is not None:
        check_imports(
            parse(source, name),
            name,
            _("The imports that a step needs are made for it; remove the line."),
        )
    rules = {
        "kind": exercise.kind,
        "forbidden": dict(exercise.forbidden),
        "file": name,
        "given": given or "",
    }
    odd = () if exercise.kind == "kernel" else oddities.find_oddities(source)
    line = 0 if given is not None else oddities.find_code_of_its_own(tree, source)
    return Kernels(source, exercise.entry_points, rules, odd, text if line else "", line)


def _describe_needed(kind: str) -> str:
    """Say which imports an exercise of this kind needs."""
    if kind == "kernel":
        return _(
            "A kernel needs only `import triton` and `import triton.language as tl`; remove the"
            " line."
        )
    if kind == "numpy":
        return _("This exercise needs only `import numpy as np`; remove the line.")
    return _("This exercise needs only `import torch`; remove the line.")


def _cut_or_whole(exercise: Exercise, text: str, name: str) -> str:
    """Return the entry points and what they need; the whole text if an entry point is missing."""
    tree = parse(text, name)
    try:
        return needed.cut(tree, text, name, exercise.entry_points, exercise.kind)
    except Unreadable:
        return text


def _normalise(code: str) -> str:
    """Return the code's syntax tree as text, without imports, docstrings and ``pass``."""

    class Strip(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return (
                None
                if isinstance(node, ast.Pass | ast.Import | ast.ImportFrom)
                else super().visit(node)
            )

        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            return None if isinstance(node.value, ast.Constant) else node

    return ast.dump(Strip().visit(ast.parse(code)))


def describe_refusal(refused: Unreadable) -> dict[str, Any]:
    """Return an Unreadable as plain data."""
    span = refused.span and refused.span._asdict()
    return {"cause": refused.cause, "message": str(refused), "what": refused.what, "span": span}
