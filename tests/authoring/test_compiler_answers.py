"""What the lessons ask the compiler is kept until a source of the questions changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.authoring import compiler_answers, tab
from course_lib.authoring.compiler_answers import Recorded
from course_lib.base import paths
from course_lib.base.errors import CourseError

LESSONS = pytest.mark.parametrize("notebook", tab.list_lessons(), ids=lambda file: file.stem)
ASK = "from course_lib.compiler import helper\nprint(helper.send([{'name': 'a_kernel'}], 1.0))"
SHAPES = "course_lib/compiler/helper.py"  # a source of each lesson


def write_notebook(folder: Path, *cells: str) -> Path:
    file = folder / "99_nothing.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), file)
    return file


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A notebook for which an answer is kept, and the list of what is known at each run of it."""
    notebook, runs = write_notebook(tmp_path, "1"), []

    def record(file, known, language="en"):
        runs.append(known)
        sources = {"the lesson's code": compiler_answers._hash_source("the lesson's code", file)}
        sources |= {
            name: compiler_answers._hash_source(name, file)
            for name in ("Triton", SHAPES, "course_lib/lessons/lesson13/sums.py")
        }
        return Recorded(sources, {"key": [{"number": len(runs)}]})

    monkeypatch.setattr(compiler_answers, "_FOLDER", tmp_path)
    monkeypatch.setattr(compiler_answers, "record", record)
    compiler_answers.collect([notebook])
    runs.clear()
    return notebook, runs


def change_hash(notebook: Path, name: str) -> None:
    file = compiler_answers.find_file(notebook)
    text = json.loads(file.read_text())
    text["sources"][name] = "other"
    file.write_text(json.dumps(text))


def test_a_lesson_is_not_run_while_its_sources_are_the_same(kept, capsys):
    notebook, runs = kept
    capsys.readouterr()
    assert compiler_answers.collect([notebook]) == {"key": [{"number": 1}]} and runs == []
    assert capsys.readouterr().out == "course: lesson 99: 1 answers of the compiler, kept\n"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("course_lib/lessons/lesson13/sums.py", {"key": [{"number": 1}]}),
        ("the lesson's code", {"key": [{"number": 1}]}),
        (SHAPES, {}),  # the compiler's own files, so that each question is asked again
        ("Triton", {}),
    ],
)
def test_a_lesson_is_run_again_after_a_change_of_a_source(kept, name, known, capsys):
    notebook, runs = kept
    change_hash(notebook, name)
    compiler_answers.collect([notebook])
    assert runs == [known] and f"({name} is new)" in capsys.readouterr().out
    assert (
        compiler_answers.list_changed(notebook, compiler_answers.read_kept(notebook).sources) == []
    )


def test_a_file_that_is_gone_has_changed(kept):
    notebook, _ = kept
    assert compiler_answers.list_changed(
        notebook, compiler_answers.read_kept(notebook).sources | {"course_lib/lessons/gone.py": "1"}
    )


def test_a_known_answer_is_not_asked_for_again(tmp_path):
    from course_lib.compiler import helper

    known = {
        helper.make_key([{"name": "a_kernel"}]): [{"report": None, "refusal": None}],
        "other": [],
    }
    recorded = compiler_answers.record(write_notebook(tmp_path, "import course_lib", ASK), known)
    assert recorded.answers == {key: answer for key, answer in known.items() if key != "other"}
    assert SHAPES in recorded.sources and not any(
        "grading" in name or "authoring" in name for name in recorded.sources
    )


def test_a_lesson_that_does_not_run_is_named(tmp_path):
    with pytest.raises(CourseError, match=r"(?s)99_nothing\.ipynb does not run.*ZeroDivisionError"):
        compiler_answers.record(write_notebook(tmp_path, "1 / 0"), {})


@LESSONS
def test_each_lesson_of_a_tab_has_its_answers(notebook):
    assert compiler_answers.read_kept(notebook).sources


# A hash that covers too little, or a translated comment inside of a kernel, would leave a cell of
# the tab without its answer.
@pytest.mark.sweep
@pytest.mark.parametrize("language", ["en", "zh_CN"])
@LESSONS
def test_the_answers_that_are_kept_are_those_that_a_lesson_asks_for(notebook, language, tmp_path):
    kept = compiler_answers.read_kept(notebook)
    if changed := compiler_answers.list_changed(notebook, kept.sources):
        pytest.skip(f"{changed[0]} has changed, so the next build of the site with a tab asks anew")
    program = (
        "import sys; from pathlib import Path; from course_lib.lessons.translated import"
        " read_translated; print(read_translated(Path(sys.argv[1])))"
    )
    translated = subprocess.run(
        [sys.executable, "-c", program, notebook],
        capture_output=True,
        text=True,
        check=True,
        cwd=paths.ROOT,
        env=os.environ | {"COURSE_LANG": language},
    )
    (tmp_path / notebook.name).write_text(translated.stdout, encoding="utf-8")
    asked = compiler_answers.record(
        tmp_path / notebook.name, kept.answers if language != "en" else {}, language
    )
    assert asked.answers.keys() == kept.answers.keys()
    assert list(map(_list_facts, asked.answers.values())) == [
        _list_facts(kept.answers[key]) for key in asked.answers
    ]


def _list_facts(answers: list[dict]) -> list:
    """What a question's answer says besides texts with the names of files, and seconds."""
    varying = ("ptx", "ttir", "ttgir", "seconds")
    return [
        (
            answer["refusal"],
            {
                name: value
                for name, value in (answer["report"] or {}).items()
                if name not in varying
            },
        )
        for answer in answers
    ]
