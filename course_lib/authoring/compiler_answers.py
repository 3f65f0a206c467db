"""The compiler's answers to what the lessons ask it, which a browser tab brings because it has no
compiler.

To get them, each lesson is run. They are kept in ``site/compiler_answers``, a file for each lesson,
together with the hash of every source that shaped the questions. The build of a site with a tab
runs a lesson again if one of its sources has changed. The files are committed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.translation import VARIABLE

# by the key of a question, see course_lib.compiler.helper
Answers = dict[str, list[dict[str, Any]]]

_FOLDER = Path(__file__).parent / "site" / "compiler_answers"
# The rooms in which kernels, their arguments and the questions about them are made. A change in
# another room changes no question.
_COMPILER = ("compiler",)  # a change here may change any answer
_ROOMS = (*_COMPILER, "bench", "kernels", "lessons", "norms", "tuning")
_LESSON, _TRITON = "the lesson's code", "Triton"  # sources that are no file


@dataclass(frozen=True)
class Recorded:
    """What a lesson asks the compiler.

    Attributes:
        sources: what shaped the questions and the answers: the hash of each file by its path, of
            the lesson's code, and Triton's version."""

    sources: dict[str, str]
    answers: Answers


def collect(notebooks: Iterable[Path]) -> Answers:
    """Return the answers to all ``notebooks``. Run those whose kept answers are out of date, and
    keep the new ones; print a line for each.

    Raises: CourseError if a notebook does not run.
    """
    notebooks, answers = list(notebooks), Answers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for notebook, (recorded, outcome) in zip(notebooks, pool.map(find, notebooks), strict=True):
            if outcome:
                write_atomic(find_file(notebook), _write(recorded))
            print(
                f"course: lesson {notebook.name[:2]}: {len(recorded.answers)} answers of the"
                f" compiler, {outcome or 'kept'}",
                flush=True,
            )
            answers |= recorded.answers
    return answers


def find(notebook: Path) -> tuple[Recorded, str]:
    """Return what is kept for a notebook if it is up to date. Otherwise run the notebook; the
    second result says how long it took, and why.

    Raises: CourseError if it does not run.
    """
    recorded_before = read_kept(notebook)
    changed = list_changed(notebook, recorded_before.sources)
    if not changed:
        return recorded_before, ""
    started = time.monotonic()
    compiler_changed = any(
        name == _TRITON or _is_source(paths.ROOT / name, _COMPILER) for name in changed
    )
    recorded = record(notebook, {} if compiler_changed else recorded_before.answers)
    return recorded, f"recorded in {time.monotonic() - started:.0f} s ({changed[0]} is new)"


def find_file(notebook: Path) -> Path:
    """Return the file with the answers for a notebook."""
    return _FOLDER / f"{notebook.stem}.json"


def read_kept(notebook: Path) -> Recorded:
    """Read what is kept for a notebook; it is empty for a new notebook."""
    if not (file := find_file(notebook)).exists():
        return Recorded({}, {})
    return Recorded(**json.loads(file.read_text(encoding="utf-8")))


def list_changed(notebook: Path, sources: dict[str, str]) -> list[str]:
    """Return the names of the sources whose hash is another one now."""
    return [
        name for name in (_LESSON, *sources) if _hash_source(name, notebook) != sources.get(name)
    ]


def record(notebook: Path, known_answers: Answers, language: str = "en") -> Recorded:
    """Run a notebook in a process of its own, and return what it asks.

    Args:
        known_answers: answers that need not be asked again.

    Raises: CourseError if it does not run.
    """
    process = subprocess.run(
        [sys.executable, "-c", f"import {__name__} as module; module.print_answers()", notebook],
        input=json.dumps(known_answers),
        capture_output=True,
        text=True,
        env=os.environ | {"COURSE_DEVICE": "cpu", VARIABLE: language},
        cwd=paths.ROOT,
        check=False,
    )
    if process.returncode:
        raise CourseError(
            f"{paths.shown(notebook)} does not run, so it is not known what it asks the"
            f" compiler:\n{process.stderr[-2000:]}"
        )
    report = json.loads(process.stdout.splitlines()[-1])
    # Another process compiles, so that this one has not imported all that the answers depend on.
    compiler = (
        [_TRITON, *map(_name, (paths.PACKAGE / "compiler").glob("*.py"))]
        if report["answers"]
        else []
    )
    names = sorted({_LESSON, *compiler, *report["modules"]})
    return Recorded({name: _hash_source(name, notebook) for name in names}, report["answers"])


def print_answers() -> None:
    """Run the notebook that the command line names, in this process. Standard input has answers
    that are known.

    Print as JSON, on the last line, the compiler's answers and the modules that shaped the
    questions."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    from course_lib.compiler import helper

    known_answers, answers, send = json.load(sys.stdin), Answers(), helper.send

    def record_answer(kernels: list[dict[str, Any]], *rest: Any) -> list[dict[str, Any]]:
        key = helper.make_key(kernels)
        answers[key] = known_answers[key] if key in known_answers else send(kernels, *rest)
        return answers[key]

    helper.send = record_answer
    shell = InteractiveShell.instance()
    setattr(shell, "kernel", None)  # noqa: B010 - the course recognises a notebook by this attribute
    with tempfile.TemporaryDirectory() as state, capture_output():
        os.environ["COURSE_STATE"] = state
        for cell in _list_code(Path(sys.argv[1])):
            shell.run_cell(cell, store_history=True).raise_error()
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    modules = [_name(Path(file)) for file in loaded if file and _is_source(Path(file), _ROOMS)]
    print(json.dumps({"answers": answers, "modules": modules}))


def _name(file: Path) -> str:
    return str(file.relative_to(paths.ROOT))


def _is_source(file: Path, rooms: Iterable[str]) -> bool:
    return any(file.is_relative_to(paths.PACKAGE / room) for room in rooms)


def _list_code(notebook: Path) -> list[str]:
    cells = nbformat.read(notebook, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def _hash_source(name: str, notebook: Path) -> str:
    """Return the hash of a source, the version of Triton, or "" for a file that is gone."""
    if name == _TRITON:
        return metadata.version("triton")
    if name == _LESSON:
        data = json.dumps(_list_code(notebook)).encode()
    elif (paths.ROOT / name).exists():
        data = (paths.ROOT / name).read_bytes()
    else:
        return ""
    return hashlib.sha256(data).hexdigest()[:16]


def _write(recorded: Recorded) -> str:
    """Return the text of a lesson's file, with a line for each source and for each answer."""
    blocks = []
    for title, entries in (("sources", recorded.sources), ("answers", recorded.answers)):
        lines = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(entries.items())
        )
        blocks.append(f"{json.dumps(title)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"
