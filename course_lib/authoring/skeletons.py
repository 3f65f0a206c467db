"""``course author new``: write the files of a new exercise, lesson, picture or kernel. Each file
says what is still missing in it.

The files are made from the templates in ``skeletons/``. A part that the author has to write carries
the mark ``SAY:``, is empty, or raises an error that says what to write. The tests of the new files
fail until all such parts are written.
"""

from __future__ import annotations

import importlib.util
import re
import string
import subprocess
import sys
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog.exercise import STEM
from course_lib.grading.kind import find_kind

FOLDER = Path(__file__).with_name("skeletons")
# the kinds of a step, too: a skeleton begins with the imports that a step is given
KINDS = tuple(name for name in paths.list_kinds() if find_kind(name).step_imports)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LESSON = re.compile(r"(\d\d)_[a-z0-9_]+")


def new_exercise(name: str, kind: str = "kernel") -> list[Path]:
    """Write the files of a new exercise.

    Args:
        name: such as "18a_column_sums".
        kind: one of KINDS; an exercise of another kind is made by hand.

    Returns: the files that were written.

    Raises: CourseError if the name or kind is not valid, or one of the files exists already; then
    nothing is written.
    """
    stem = f"ex{name.removeprefix('ex')}"
    match = STEM.fullmatch(stem)
    if match is None:
        raise CourseError(
            _(
                "{name!r} is no name for an exercise. Give lesson, letter and words, such as"
                " 18a_column_sums."
            ).format(name=name)
        )
    if kind not in KINDS:
        raise CourseError(
            _("kind {kind!r} is none of {kinds}.").format(kind=kind, kinds=", ".join(KINDS))
        )
    words = stem.removeprefix(f"ex{match[1]}_")
    is_of_kernels = find_kind(kind).is_of_kernels
    written = "kernel" if is_of_kernels else "function"
    solution = f"solution_{written}.txt"
    folder = paths.ROOT / "course_lib" / "exercises" / stem
    files = {
        paths.SOLUTIONS / f"{stem}.py": solution,
        folder / "exercise.toml": "exercise.txt",
        folder / "cases.py": f"cases_{written}.txt",
        folder / "wrong.toml": "wrong.txt",
        folder / "right" / "another_way.py": solution,
    }
    return _write(files, {
        "id": match[1], "lesson": match[1][:2], "stem": stem, "kind": kind,
        "entry_point": f"{words}_kernel" if is_of_kernels else words,
        "import_line": find_kind(kind).step_imports.rpartition("import ")[2],
    })  # fmt: skip


def new_lesson(name: str) -> list[Path]:
    """Write the percent script of a new lesson; ``name`` is, for example, "11_measuring".

    Raises: CourseError if the name is not valid, or a lesson with this number or a file with this
    name exists already.
    """
    match = _LESSON.fullmatch(name)
    if match is None:
        raise CourseError(
            _(
                "{name!r} is no name for a lesson. Give a number of two digits and words, such as"
                " 11_measuring."
            ).format(name=name)
        )
    for existing in paths.NOTEBOOK_SOURCES.glob(f"{match[1]}_*.py"):
        raise CourseError(
            _("lesson {lesson} is there already, in {file}. Take another number.").format(
                lesson=match[1], file=paths.shown(existing)
            )
        )
    return _write(
        {paths.NOTEBOOK_SOURCES / f"{name}.py": "lesson.txt"}, {"number": match[1], "stem": name}
    )


def new_picture(name: str) -> list[Path]:
    """Write the folder of a new picture with its model, its widget, its script and its test.

    Raises: CourseError if the name is not valid, or one of the files exists already.
    """
    _require_name(name, N_("a picture"))
    folder = paths.ROOT / "course_lib" / "lessons" / "pictures" / name
    files = {
        folder / "__init__.py": "picture_init.txt",
        folder / "model.py": "picture_model.txt",
        folder / "widget.py": "picture_widget.txt",
        folder / "picture.js": "picture_script.txt",
        paths.ROOT / "tests" / "pictures" / f"test_{name}.py": "picture_test.txt",
    }
    return _write(files, {"name": name})


def new_kernel(name: str) -> list[Path]:
    """Write a new reference kernel with its launch and its test.

    Raises: CourseError if the name is not valid, or one of the files exists already.
    """
    _require_name(name, N_("a kernel"))
    kernels = paths.ROOT / "course_lib" / "kernels"
    files = {
        kernels / f"{name}.py": "kernel.txt",
        kernels / "launch" / f"{name}.py": "kernel_launch.txt",
        paths.ROOT / "tests" / "kernels" / f"test_{name}.py": "kernel_test.txt",
    }
    return _write(files, {"name": name})


NEW = {"exercise": new_exercise, "lesson": new_lesson, "picture": new_picture, "kernel": new_kernel}


def _require_name(name: str, thing: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise CourseError(
            _(
                "{name!r} is no name for {thing}: small letters, digits and _, beginning with a"
                " letter."
            ).format(name=name, thing=_(thing))
        )


def _write(files: dict[Path, str], names: dict[str, str]) -> list[Path]:
    """Write every file from its template, or none if one of them exists already."""
    if existing := [paths.shown(path) for path in files if path.exists()]:
        raise CourseError(
            _(
                "nothing was written, for there is already {files}. Take another name, or go on"
                " with what is there."
            ).format(files=", ".join(existing))
        )
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(
            path, string.Template((FOLDER / template).read_text(encoding="utf-8")).substitute(names)
        )
    # line breaks and the order of imports depend on the names
    if importlib.util.find_spec("ruff") is not None:
        code = [str(path) for path in files if path.suffix == ".py"]
        for command in (["check", "-q", "--fix-only", "--select", "I"], ["format", "-q"]):
            subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--no-cache", *code],
                cwd=paths.ROOT,
                check=True,
            )
    return list(files)
