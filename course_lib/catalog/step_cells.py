"""The cells of the lessons' steps, read from the lessons' scripts. There they are solved, with
marks around the part that a learner writes.

A learner's release has no scripts. It has only the cells of steps, because a step shows an answer
after a pass or two failures.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog.cut import BEGIN, CELL_WIDTH, END, cut, drop_marks

_CALL = re.compile(r"""^step\((["'])(\d\d-[a-z0-9-]+)\1\)""", re.MULTILINE)


def list_ids(lesson: str) -> list[str]:
    """Return the ids of the steps of a lesson, such as "03", in the order of its page; an empty
    list if the lesson has no script."""
    return [
        call[2]
        for script in _find_scripts(lesson)
        for call in _CALL.finditer(script.read_text(encoding="utf-8"))
    ]


def make_unsolved(step_id: str) -> str:
    """Return the cell as the course gives it to the learner.

    Raises: CourseError if no script has it, or its marks do not pair up.
    """
    return cut_cell(_read(step_id), f"step {step_id}")


def cut_cell(solved: str, where: str) -> str:
    """Return a step's cell as the course gives it to the learner, cut out of its solved form.

    Raises: CourseError, with ``where``, if its marks do not pair up.
    """
    return cut(solved, where, CELL_WIDTH).rstrip("\n")


def make_solved(step_id: str) -> str:
    """Return the cell with the course's answer.

    Raises: CourseError if no script has it.
    """
    return drop_marks(_read(step_id)).rstrip("\n")


def read_answer(step_id: str) -> str:
    """Return the course's version of the lines that the learner writes.

    Raises: CourseError if no script has the step.
    """
    return "\n".join(textwrap.dedent("\n".join(part)) for part in _split_at_marks(step_id)[1::2])


def list_given(step_id: str) -> tuple[str, ...]:
    """Return the lines that are given to the learner.

    Raises: CourseError if no script has the step.
    """
    return tuple(line for part in _split_at_marks(step_id)[::2] for line in part)


def _split_at_marks(step_id: str) -> list[list[str]]:
    """Split the solved cell at its marks: the lines before the first mark, the first answer, the
    lines up to the next mark, and so on."""
    parts: list[list[str]] = [[]]
    for line in _read(step_id).splitlines():
        if line.strip() in (BEGIN, END):
            parts.append([])
        elif not line.strip().startswith(("#:", "#|")):
            parts[-1].append(line)
    return parts


def list_parameters(step_id: str, function: str) -> list[str]:
    """Return the parameter names of a function or kernel in the solved cell; an empty list if it
    has no such function."""
    for node in ast.walk(ast.parse(make_solved(step_id))):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return []


def _read(step_id: str) -> str:
    for script in _find_scripts(step_id[:2]):
        for cell in _split(script):
            if any(call[2] == step_id for call in _CALL.finditer(cell)):
                return cell.strip("\n")
    raise CourseError(
        f"the lesson's script in {paths.shown(paths.NOTEBOOK_SOURCES)} has no cell with"
        f" step({step_id!r})."
    )


def extract(script: Path) -> str:
    """Return the text of a lesson's script with only its cells of steps."""
    cells = [cell.strip("\n") for cell in _split(script) if _CALL.search(cell)]
    return "".join(f"# %%\n{cell}\n" for cell in cells)


def _split(script: Path) -> list[str]:
    return re.split(r"^# %%.*\n?", script.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _find_scripts(lesson: str) -> list[Path]:
    folder = paths.RELEASED if paths.is_release() else paths.NOTEBOOK_SOURCES
    return sorted(folder.glob(f"{lesson}_*.py"))
