"""Launches of a learner's kernel. The order of its parameters is read from the exercise, so it is
written nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.catalog import texts

EPS = 1e-5
_KINDS = {
    "mean": "row",
    "var": "row",
    "rstd": "row",
    "w": "column",
    "b": "column",
    "dw_partial": "partial",
    "db_partial": "partial",
}
_ROW_RESULTS = {"06a": "y"}  # a result with one number per row


def name_kernel(exercise_id: str) -> str:
    """Return the name of the exercise's kernel, which is the first of its entry points."""
    return catalog.get(exercise_id).entry_points[0]


def list_tensors(exercise_id: str) -> dict[str, str]:
    """Return the kernel's tensors in order, by their names without ``_ptr``, each with its kind.

    "matrix" has a number for each element, "row" one per row, "column" one per column, "partial"
    one row per program. Rows and partial sums are fp32.
    """
    names = [
        name.removesuffix("_ptr") for name in _list_parameters(exercise_id) if name.endswith("_ptr")
    ]
    return {
        name: "row" if _ROW_RESULTS.get(exercise_id) == name else _KINDS.get(name, "matrix")
        for name in names
    }


def list_shapes(exercise_id: str, M: int, N: int, programs: int = 0) -> dict[str, tuple[int, ...]]:
    """Return the shape of each of the kernel's tensors for a matrix of M x N. ``programs``: rows of
    the partial sums."""
    shapes = {"matrix": (M, N), "row": (M,), "column": (N,), "partial": (programs, N)}
    return {name: shapes[kind] for name, kind in list_tensors(exercise_id).items()}


def has_constant(exercise_id: str, name: str) -> bool:
    """Return True if the kernel has a tl.constexpr parameter ``name``."""
    return _list_parameters(exercise_id).get(name, False)


def order_arguments(
    exercise_id: str, M: int, N: int, values: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of the exercise's kernel in its order, and its constants by name.

    Args:
        values: tensors by name without ``_ptr``, constants, and what is not as usual: packed rows,
            and eps = 1e-5. It may hold more than the kernel takes.

    Raises: CourseError if the kernel has a parameter that has no value here.
    """
    arguments, constants = [], {}
    for parameter, constant in _list_parameters(exercise_id).items():
        name = parameter.removesuffix("_ptr")
        if name in values:
            value = values[name]
        elif name in (usual := {"M": M, "N": N, "eps": EPS}):
            value = usual[name]
        elif name.startswith("stride_"):
            value = 1 if name.endswith("_col") else N
        else:
            raise CourseError(
                _(
                    "the kernel of {id} has a parameter `{parameter}`, which this launch has no"
                    " value for."
                ).format(id=exercise_id, parameter=parameter)
            )
        if constant:
            constants[name] = value
        else:
            arguments.append(value)
    return arguments, constants


def _list_parameters(exercise_id: str) -> dict[str, bool]:
    """Return the parameters of the exercise's kernel in order, and whether each is a
    tl.constexpr."""
    return _read_parameters(exercise_id, paths.SOLUTIONS)


@cache
def _read_parameters(exercise_id: str, _solutions: Path) -> dict[str, bool]:
    """Read the parameters once per process and folder of solutions: lesson 14 launches a kernel
    thousands of times."""
    text, kernel = texts.make_unsolved_text(catalog.get(exercise_id)), name_kernel(exercise_id)
    definition = next(
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == kernel
    )
    return {argument.arg: argument.annotation is not None for argument in definition.args.args}
