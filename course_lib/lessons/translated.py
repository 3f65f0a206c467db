"""The lessons in the chosen language, made from the built notebooks: text cells, comments, and what
a lesson shows of questions, steps, tasks and pictures before it is run are translated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import nbformat

from course_lib.base import paths
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.translation import (
    choose_language,
    gettext,
    translate,
    translate_filled,
    translate_markdown,
)
from course_lib.catalog.comments import translate_comments
from course_lib.lessons.hunt_panel import offer_hunt
from course_lib.lessons.kit.output import read_picture
from course_lib.lessons.panel import exercise
from course_lib.lessons.prediction import predict, review_predictions
from course_lib.lessons.recalling import Recall
from course_lib.lessons.stepping import show_unsolved

_WRITTEN = "course_text"  # metadata of a notebook: the texts of its cells as the course wrote them
# what shows a box before its cell is run, by the function that the cell calls
_BOXES: dict[str, Callable[[str], Any]] = {
    "predict": predict,
    "exercise": exercise,
    "step": show_unsolved,
    "recall": lambda lesson: Recall(lesson, {}, {}),
    "offer_hunt": offer_hunt,
    "review_predictions": review_predictions,
}
_CALL = re.compile(rf'^({"|".join(_BOXES)})\("([^"]+)"\)', re.MULTILINE)
_BOX = "course-box"  # the class of the box, in the HTML of an output
_INVITATION = re.compile(r"<p><em>([^<]+)</em></p>")  # in the place of controls that need Python
_COURSE_SAYS = re.compile(r"^course: .+$", re.MULTILINE)  # a printed line of the course itself
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
    """Translate the text cells of a built notebook, the comments of its code, and what it shows
    before it is run, in place."""
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
    """Show boxes, pictures and the course's own lines in the chosen language. This takes seconds
    for all lessons together."""
    for cell in notebook["cells"]:
        if called := _CALL.findall("".join(cell["source"])) if cell["cell_type"] == "code" else []:
            name, identifier = called[-1]
            shown = _BOXES[name](identifier)._repr_mimebundle_()
            still = {kind: text for kind, text in shown.items() if kind.startswith("text/")}
            others = [output for output in cell["outputs"] if _BOX not in _read_html(output)]
            box = {"output_type": "display_data", "data": still, "metadata": {}}
            cell["outputs"] = [*others, nbformat.from_dict(box)]
        for output in cell.get("outputs", []):
            if picture := read_picture(_read_html(output)):
                output["data"] |= picture._repr_mimebundle_()
            elif invitation := _INVITATION.fullmatch(_read_html(output)):
                words = gettext(invitation[1])
                output["data"] |= {"text/html": f"<p><em>{words}</em></p>", "text/plain": words}
            elif output["output_type"] == "stream":
                output["text"] = _COURSE_SAYS.sub(
                    lambda line: translate_filled(line[0], "interface"), "".join(output["text"])
                )


def _read_html(output: dict[str, Any]) -> str:
    return "".join(output.get("data", {}).get("text/html", ""))


def _list_cells(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook.get("cells", [])]


def _read(file: Path) -> dict[str, Any]:
    try:
        notebook = json.loads(file.read_text(encoding="utf-8"))
        return notebook if isinstance(notebook, dict) else {}
    except ValueError:
        return {}  # damaged: it is kept as a copy, and written anew
