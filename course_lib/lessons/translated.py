"""The lessons in the chosen language, made from the built notebooks: text cells, comments,
predictions and tasks are translated."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import nbformat

from course_lib.base import paths
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.translation import choose_language, translate, translate_markdown
from course_lib.catalog.comments import translate_comments
from course_lib.lessons.kit.output import read_picture
from course_lib.lessons.panel import exercise
from course_lib.lessons.prediction import predict

_WRITTEN = "course_text"  # metadata of a notebook: the texts of its cells as the course wrote them
_STILL = re.compile(r'^(predict|exercise)\("([^"]+)"\)', re.MULTILINE)
_IMAGE = re.compile(r"\]\(images/")


def write_lessons(home: Path) -> Path:
    """Write the lessons in the chosen language, which is not English, into ``home``, and return
    their folder.

    A lesson whose cells the learner changed stays while the course's own text is the same; when
    that is new, a copy of it is kept in ``.course/kept``.

    Raises: CourseError if the course has no such language; OSError if a file cannot be written.
    """
    folder = home / "notebooks" / choose_language()
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        notebook, target = json.loads(file.read_text(encoding="utf-8")), folder / file.name
        _translate_cells(notebook, f"lesson{file.name[:2]}", "../images/")
        ours = _list_cells(notebook)
        if target.exists():
            written = _read(target)
            if written.get("metadata", {}).get(_WRITTEN) == ours:
                continue
            if written.get("metadata", {}).get(_WRITTEN) != _list_cells(written):
                keep_copy(target, paths.state() / "kept", datetime.now())
        _renew_stills(notebook)
        notebook["metadata"][_WRITTEN] = ours
        write_atomic(target, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
    return folder


def translate_notebook(notebook: dict[str, Any], catalog: str) -> None:
    """Translate the text cells of a built notebook, the comments of its code, and what it shows of
    questions and tasks, in place."""
    _translate_cells(notebook, catalog, "images/")
    _renew_stills(notebook)


def read_translated(file: Path) -> str:
    """Return the text of a built notebook in the chosen language."""
    text = file.read_text(encoding="utf-8")
    if choose_language() == "en":
        return text
    notebook = json.loads(text)
    translate_notebook(notebook, f"lesson{file.name[:2]}")
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _translate_cells(notebook: dict[str, Any], catalog: str, images: str) -> None:
    """Translate text cells and comments. ``images`` is the path from the notebook to its images."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = _IMAGE.sub(f"]({images}", translate_markdown(source, catalog))
        else:
            cell["source"] = translate_comments(source, partial(translate, catalog=catalog))


def _renew_stills(notebook: dict[str, Any]) -> None:
    """Show questions, tasks and pictures in the chosen language. This takes seconds for all lessons
    together."""
    for cell in notebook["cells"]:
        if called := _STILL.findall("".join(cell["source"])) if cell["cell_type"] == "code" else []:
            name, identifier = called[-1]
            still_outputs = (predict if name == "predict" else exercise)(
                identifier
            )._repr_mimebundle_()
            still = {kind: text for kind, text in still_outputs.items() if kind.startswith("text/")}
            cell["outputs"] = [
                nbformat.from_dict({"output_type": "display_data", "data": still, "metadata": {}})
            ]
        for output in cell.get("outputs", []):
            if picture := read_picture("".join(output.get("data", {}).get("text/html", ""))):
                output["data"] |= picture._repr_mimebundle_()


def _list_cells(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook.get("cells", [])]


def _read(file: Path) -> dict[str, Any]:
    try:
        notebook = json.loads(file.read_text(encoding="utf-8"))
        return notebook if isinstance(notebook, dict) else {}
    except ValueError:
        return {}  # damaged: it is kept as a copy, and written anew
