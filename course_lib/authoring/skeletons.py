"""``course author new``: lays out the files of a new exercise, lesson, picture or kernel. Each says what is still missing in it.

The texts are the templates in ``skeletons/``. What an author has to write carries the mark ``SAY:``, is empty, or fails with a
sentence; the tests of the new thing fail until it is there.
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
from course_lib.catalog.exercise import STEM

FOLDER = Path(__file__).with_name("skeletons")
KINDS = ("kernel", "torch", "numpy")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LESSON = re.compile(r"(\d\d)_[a-z0-9_]+")


def new_exercise(name: str, kind: str = "kernel", family: str = "") -> list[Path]:
    """The files of an exercise.

    Args:
        name: such as "18a_column_sums".
        kind: one of KINDS; an exercise in "autograd" is made by hand.
        family: an old one, or the name of a new one; empty for a new one that is named after the exercise.

    Returns: the files that were written.

    Raises: CourseError if the name, kind or family is none, or a file is there already; then nothing is written.
    """
    stem = f"ex{name.removeprefix('ex')}"
    match = STEM.fullmatch(stem)
    if match is None:
        raise CourseError(f"{name!r} is no name for an exercise. Give lesson, letter and words, such as 18a_column_sums.")
    if kind not in KINDS:
        raise CourseError(f"kind {kind!r} is none of {', '.join(KINDS)}.")
    words = stem.removeprefix(f"ex{match[1]}_")
    family = family or words
    _require_name(family, "a family")
    written = "kernel" if kind == "kernel" else "function"
    solution = f"solution_{written}.txt"
    files = {
        paths.SOLUTIONS / f"{stem}.py": solution,
        paths.ROOT / "course_lib" / "catalog" / f"{stem}.toml": "catalog.txt",
        paths.ROOT / "tests" / "mutants" / f"ex{match[1]}.toml": "mutants.txt",
        paths.ROOT / "tests" / "variants" / f"{stem.partition('_')[0]}_another_way.py": solution,
    }
    module = paths.ROOT / "course_lib" / "grading" / "families" / f"{family}.py"
    if not module.exists():  # an old family is the author's to extend
        files[module] = f"family_{written}.txt"
    return _write(files, {
        "id": match[1], "lesson": match[1][:2], "stem": stem, "kind": kind, "family": family,
        "entry_point": f"{words}_kernel" if kind == "kernel" else words,
        "import_line": "torch" if kind == "torch" else "numpy as np",
    })  # fmt: skip


def new_lesson(name: str) -> list[Path]:
    """The percent source of a lesson; ``name`` is such as "11_measuring".

    Raises: CourseError if the name is none, or a lesson with this number or a file of this name is there already.
    """
    match = _LESSON.fullmatch(name)
    if match is None:
        raise CourseError(f"{name!r} is no name for a lesson. Give a number of two digits and words, such as 11_measuring.")
    for other in paths.NOTEBOOK_SOURCES.glob(f"{match[1]}_*.py"):
        raise CourseError(f"lesson {match[1]} is there already, in {paths.shown(other)}. Take another number.")
    return _write({paths.NOTEBOOK_SOURCES / f"{name}.py": "lesson.txt"}, {"number": match[1], "stem": name})


def new_picture(name: str) -> list[Path]:
    """The folder of a picture with its model, what lessons call, its script and its test.

    Raises: CourseError if the name is none, or a file is there already.
    """
    _require_name(name, "a picture")
    folder = paths.ROOT / "course_lib" / "lessons" / name
    files = {
        folder / "__init__.py": "picture_init.txt",
        folder / "model.py": "picture_model.txt",
        folder / "widget.py": "picture_widget.txt",
        folder / "picture.js": "picture_script.txt",
        paths.ROOT / "tests" / "pictures" / f"test_{name}.py": "picture_test.txt",
    }
    return _write(files, {"name": name})


def new_kernel(name: str) -> list[Path]:
    """A reference kernel with its launch and its test.

    Raises: CourseError if the name is none, or a file is there already.
    """
    _require_name(name, "a kernel")
    kernels = paths.ROOT / "course_lib" / "kernels"
    files = {
        kernels / f"{name}.py": "kernel.txt",
        kernels / "launch" / f"{name}.py": "kernel_launch.txt",
        paths.ROOT / "tests" / "kernels" / f"test_{name}.py": "kernel_test.txt",
    }
    return _write(files, {"name": name})


NEW = {"exercise": new_exercise, "lesson": new_lesson, "picture": new_picture, "kernel": new_kernel}


def _require_name(name: str, what: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise CourseError(f"{name!r} is no name for {what}: small letters, digits and _, beginning with a letter.")


def _write(files: dict[Path, str], names: dict[str, str]) -> list[Path]:
    """Write every file, or none if one of them is there already."""
    if there := [paths.shown(path) for path in files if path.exists()]:
        raise CourseError(f"nothing was written, for there is already {', '.join(there)}. Take another name, or go on with what is there.")
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, string.Template((FOLDER / template).read_text(encoding="utf-8")).substitute(names))
    if importlib.util.find_spec("ruff") is not None:  # where lines break, and the order of imports, depend on the names
        code = [str(path) for path in files if path.suffix == ".py"]
        for command in (["check", "-q", "--fix-only", "--select", "I"], ["format", "-q"]):
            subprocess.run([sys.executable, "-m", "ruff", *command, "--no-cache", *code], cwd=paths.ROOT, check=True)
    return list(files)
