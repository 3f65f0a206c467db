"""Find out whether a file's text has code for an exercise. The text may be hostile, so
``reader.py`` runs this in a sandbox."""

from __future__ import annotations

import ast
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.grading.kind import find_kind
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
    tree = parse(text, name)
    if _list_code(exercise, parse(unsolved, exercise.file), exercise.file) == _list_code(
        exercise, tree, name
    ):
        return None
    return _extract(exercise, tree, text, name, given)


def extract(exercise: Exercise, text: str, name: str, given: str | None = None) -> Kernels:
    """Return the same as :func:`read_attempt`, also for a file that is as the course wrote it."""
    return _extract(exercise, parse(text, name), text, name, given)


def _extract(
    exercise: Exercise, tree: ast.Module, text: str, name: str, given: str | None
) -> Kernels:
    kind = find_kind(exercise.kind)
    if given is None:
        check_imports(tree.body, name, kind.describe_needed_imports())
    cut = needed.cut(tree, name, exercise.entry_points, kind)
    if given is not None:
        check_imports(
            cut.statements,
            name,
            _("The imports that a step needs are made for it; remove the line."),
        )
    rules = {
        "kind": exercise.kind,
        "forbidden": dict(exercise.forbidden),
        "file": name,
        "given": given or "",
    }
    odd = () if kind.is_of_kernels else oddities.find_oddities(cut.statements)
    line = 0 if given is not None else oddities.find_code_of_its_own(tree, cut.statements)
    return Kernels(cut.write(text), exercise.entry_points, rules, odd, text if line else "", line)


def _list_code(exercise: Exercise, tree: ast.Module, name: str) -> list[Any]:
    """Return the entry points and what they need as plain data, to be compared; the whole file if
    an entry point is missing. Comments, docstrings, imports and ``pass`` are left out."""
    try:
        cut = needed.cut(tree, name, exercise.entry_points, find_kind(exercise.kind))
    except Unreadable:
        cut = needed.Cut(tree.body)
    return [*_outline(cut.statements), cut.alias]


def _outline(part: Any) -> Any:
    """Return a node, a list of nodes or a value of a node as plain data, without its place."""
    if isinstance(part, ast.AST):
        return [type(part).__name__, *(_outline(value) for _name, value in ast.iter_fields(part))]
    if isinstance(part, list):
        return [_outline(item) for item in part if not _is_no_code(item)]
    return repr(part)


def _is_no_code(node: Any) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Import | ast.ImportFrom)


def describe_refusal(refused: Unreadable) -> dict[str, Any]:
    """Return an Unreadable as plain data."""
    span = refused.span and refused.span._asdict()
    return {"cause": refused.cause, "message": str(refused), "what": refused.what, "span": span}
