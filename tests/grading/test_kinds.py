"""A kind of exercise is one class, in a module of its own, and nobody else asks for it by name."""

from __future__ import annotations

import ast

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.grading.kind import find_kind, find_mode, load_kinds

NAMES = {*paths.list_kinds(), *(mode.name for kind in load_kinds() for mode in kind.modes)}
MODULES = sorted(
    file
    for room in ("grading", "sandbox", "classroom", "catalog")
    for file in (paths.PACKAGE / room).rglob("*.py")
    if paths.KINDS not in file.parents
)


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_the_kind_of_an_exercise_has_a_mode_for_every_machine(exercise):
    kind = find_kind(exercise.kind)
    assert find_mode(kind.choose_mode(None)) in kind.modes
    assert not kind.base_mode.compiles


def compares_a_name(node: ast.AST) -> bool:
    """Return True for ``exercise.kind == "kernel"``, ``mode in ("cpu", "gpu")`` and the like."""
    if not isinstance(node, ast.Compare):
        return False
    asked = ast.unparse(node.left).rpartition(".")[2]
    texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return asked in ("kind", "mode") and bool(texts & NAMES)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(paths.PACKAGE)))
def test_no_other_module_asks_for_a_kind_by_its_name(file):
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    assert not [ast.unparse(node) for node in nodes if compares_a_name(node)]
