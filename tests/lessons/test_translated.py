"""The lessons in another language: what a learner opens, what is kept of their work, and which
parts stay as they are."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import subprocess
import sys

import pytest
from english import find_english

from course_lib.base import paths

WRITE = (
    "from pathlib import Path; import sys; from course_lib.lessons.translated import write_lessons;"
    " print(write_lessons(Path(sys.argv[1])))"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    write(folder)
    return folder


def write(folder):
    settings = os.environ | {"COURSE_LANG": "zh", "COURSE_STATE": str(folder / "state")}
    subprocess.run(
        [sys.executable, "-c", WRITE, str(folder)], env=settings, cwd=paths.ROOT, check=True
    )


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def read_code(text: str) -> str:
    """Return a cell's code without its comments and docstrings; its layout says nothing."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def test_every_lesson_is_there_with_the_same_code(home):
    for english in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        theirs, ours = read(home / "notebooks" / "zh_CN" / english.name), read(english)
        assert [cell["cell_type"] for cell in theirs["cells"]] == [
            cell["cell_type"] for cell in ours["cells"]
        ]
        for there, here in zip(theirs["cells"], ours["cells"], strict=True):
            if here["cell_type"] == "code":
                assert read_code(source(there)) == read_code(source(here)), (
                    "comments and docstrings alone may differ"
                )


def test_text_steps_questions_and_tasks_are_translated(home):
    cells = read(home / "notebooks" / "zh_CN" / "00_start_here.ipynb")["cells"]
    assert "约" in source(cells[0]) and "分钟" in source(cells[0])
    step = next(source(cell) for cell in cells if "step" in cell["metadata"].get("tags", []))
    assert "# YOUR CODE" in step and any("\u4e00" <= letter <= "\u9fff" for letter in step)
    for call in ("predict(", "exercise("):
        shown = next(
            cell["outputs"][-1]["data"]["text/html"]
            for cell in cells
            if source(cell).startswith(call) or f"\n{call}" in source(cell)
        )
        assert "运行这个单元格" in shown and "Run this cell" not in shown


def test_what_a_lesson_shows_before_it_is_run_is_translated(home):
    """Boxes of questions, steps, tasks, hunts and reviews, and the lines that the course prints."""
    boxes = 0
    for file in sorted((home / "notebooks" / "zh_CN").glob("*.ipynb")):
        for output in (
            output for cell in read(file)["cells"] for output in cell.get("outputs", [])
        ):
            markup = "".join(output.get("data", {}).get("text/html", ""))
            shown = re.findall("(?m)^course: .+$", "".join(output.get("text", "")))
            if 'class="course-box' in markup or markup.startswith("<p><em>"):
                words = re.sub("(?s)<style>.*?</style>|<code>.*?</code>|<[^>]+>", "|", markup)
                shown.append(html.unescape(words))
            boxes += len(shown)
            for text in shown:
                assert re.search("[\u4e00-\u9fff]", text), (file.name, text)
                assert find_english(text.replace("ROWS x BLOCK", "")) == [], file.name
    assert boxes > 200


def test_images_are_one_folder_up(home):
    text = "".join(
        source(cell) for cell in read(home / "notebooks" / "zh_CN" / "00_start_here.ipynb")["cells"]
    )
    assert "](../images/" in text and "](images/" not in text


def test_a_lesson_that_a_learner_changed_stays_until_the_course_has_a_new_text(home):
    same, older = (
        home / "notebooks" / "zh_CN" / f"{name}.ipynb" for name in ("18_capstone", "17_bug_museum")
    )
    for file in (same, older):
        notebook = read(file)
        notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": ["my words"]})
        if file == older:
            notebook["metadata"]["course_text"][0] = "an older text"
        file.write_text(json.dumps(notebook), encoding="utf-8")
    write(home)
    assert source(read(same)["cells"][-1]) == "my words"
    assert source(read(older)["cells"][-1]) != "my words"
    [copy] = (home / "state" / "kept").glob("*.ipynb")
    assert copy.name.startswith("17_bug_museum") and source(read(copy)["cells"][-1]) == "my words"
