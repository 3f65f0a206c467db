"""The lessons: built from their scripts, true in every claim, unsolved and solved; and a broken notebook does fail."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from notebook_runs import notebook, run_nbval

from course_lib import catalog
from course_lib.authoring import exercises
from course_lib.authoring.notebooks import find_notebook, list_sources, read_source
from course_lib.base import paths
from course_lib.catalog import texts

pytest.importorskip("nbval", reason="nbval is not installed; `make env` installs it")
LESSONS = list_sources()


def committed(path) -> list[str]:
    """The notebook as it lies there, and as git has it: a learner may have edited the first, an author not committed yet."""
    texts = [path.read_text(encoding="utf-8")] if path.exists() else []
    if shutil.which("git"):
        done = subprocess.run(
            ["git", "show", f"HEAD:notebooks/{path.name}"], cwd=paths.ROOT, capture_output=True, text=True, check=False
        )
        texts += [done.stdout] if done.returncode == 0 else []
    return texts


def content(notebook: dict) -> list:
    """Everything that is built from the script: cells and metadata, no outputs."""
    cells = [(cell["cell_type"], cell["id"], "".join(cell["source"]), cell["metadata"]) for cell in notebook["cells"]]
    return [cells, notebook["metadata"], notebook["nbformat"], notebook["nbformat_minor"]]


def built(source) -> dict:
    """The committed notebook that matches its script."""
    want = content(read_source(source))
    found = [json.loads(text) for text in committed(find_notebook(source))]
    for candidate in found:
        if content(candidate) == want:
            return candidate
    pytest.fail(f"{find_notebook(source).name} is not what {source.name} builds. Run `make notebooks`.")


def code_cells(data: dict) -> list[dict]:
    return [cell for cell in data["cells"] if cell["cell_type"] == "code"]


def test_there_are_lessons():
    assert {source.name[:2] for source in LESSONS} >= {"00", "06", "07"}
    assert {exercise.lesson for exercise in catalog.exercises().values()} <= {source.name[:2] for source in LESSONS}


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_the_notebook_is_built_from_its_script(source):
    built(source)


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_the_notebook_is_executed_and_carries_no_private_state(source):
    data = built(source)
    cells = code_cells(data)
    assert "widgets" not in data["metadata"], "saved widget state hides every figure on static pages"
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "not run from top to bottom"
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures, "no figure in it"
    for output in pictures:
        assert output["metadata"]["image/png"]["alt"].strip(), "a figure without alt text"
    text = json.dumps(data)
    assert str(paths.ROOT) not in text and "/tmp/" not in text, "a path of the machine that built it"


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_keeps_the_rules_that_nbval_cannot_see(source):
    cells = code_cells(built(source))
    assert "".join(cells[0]["source"]).strip() == "import course_lib"
    for cell in cells:
        text = "".join(cell["source"])
        assert not re.search(r"^\s*[%!]", text, re.MULTILINE), f"a magic: a bad one hides every error after it\n{text}"
        assert "raises-exception" not in cell["metadata"].get("tags", []), (
            "such a cell passes when nothing is raised, too"
        )
    kernels = [cell for cell in cells if "assert" in "".join(cell["source"])]
    assert len(kernels) >= len(cells) // 2, "fewer than half of the code cells assert anything"


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_has_the_panels_of_its_exercises(source):
    text = "\n".join("".join(cell["source"]) for cell in code_cells(built(source)))
    for exercise in catalog.exercises().values():
        here = f'exercise("{exercise.id}")' in text
        assert here == (exercise.lesson == source.name[:2]), (
            f"{source.name} {'has a' if here else 'lacks the'} panel of {exercise.id}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("state", ["not attempted", "pass"])
@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_runs_under_nbval(source, state, tmp_path):
    """Every cell, with the unsolved exercises and again with the solutions; each panel's verdict must then be ``state``."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / find_notebook(source).name).write_text(json.dumps(built(source)))
    exercises.write(tmp_path / "exercises")
    if state == "pass":
        for exercise in catalog.exercises().values():
            shutil.copy(paths.SOLUTIONS / f"{exercise.file}.py", tmp_path / "exercises")
    run = run_nbval(tmp_path / "notebooks", tmp_path / "exercises", COURSE_EXPECT=state)
    assert run.exit_code == 0, run.output[-6000:]
    assert f"{len(code_cells(built(source)))} passed" in run.output


# a notebook with one fault in an otherwise sound lesson; each must fail
BROKEN = {
    "a broken claim": ["import course_lib", "assert 2 + 2 == 5"],
    "an error": ["import course_lib", "course_lib.no_such_thing"],
    "a printed failure": ["import course_lib", "print('06a\\nFAILED: 3 of 20 cases')"],
    "an error behind a bad magic": ["import course_lib", "%no_such_magic\nassert False"],
    "a printed traceback": ["import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()"],
    "an exercise with another verdict": ["import course_lib", "from course_lib import exercise\nexercise('00a')"],
    "a kernel that died": ["import os\nos._exit(1)"],
}


@pytest.mark.slow
def test_broken_notebooks_fail_and_a_sound_one_passes(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    names = {f"broken_{n:02}.ipynb": fault for n, fault in enumerate(BROKEN)}
    for name, fault in names.items():
        notebook(folder / name, *BROKEN[fault])
    notebook(folder / "sound.ipynb", "import course_lib", "print('2 x 2 =', 2 * 2)\nassert 2 * 2 == 4")
    exercises.write(tmp_path / "exercises")
    run = run_nbval(
        folder, tmp_path / "exercises", cell_seconds=12, COURSE_EXPECT="pass"
    )  # only a time-out notices a dead kernel
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*?(\w+\.ipynb)", run.output, re.MULTILINE))
    assert failed == set(names), f"passed: {[names[n] for n in set(names) - failed]}\n{run.output[-4000:]}"


def test_the_learners_files_are_not_what_the_tests_run(tmp_path):
    """The tests above take generated exercises; this is the function they rely on."""
    exercises.write(tmp_path)
    for exercise in catalog.exercises().values():
        assert (tmp_path / f"{exercise.file}.py").read_text() == texts.make_unsolved_text(exercise)


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_marks_outputs_for_nbval_to_compare(source):
    """Without a marked cell that has a stored output, nbval's lax mode compares nothing."""
    marked = [cell for cell in code_cells(built(source)) if "nbval-check-output" in cell["metadata"].get("tags", [])]
    assert marked and all(cell["outputs"] for cell in marked)


@pytest.mark.slow
def test_a_changed_output_fails_where_it_is_marked(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, stored in (("changed", "4\n"), ("same", "5\n")):
        notebook(folder / f"{name}.ipynb", "print(2 + 3)", tags={0: ["nbval-check-output"]})
        data = json.loads((folder / f"{name}.ipynb").read_text())
        data["cells"][0] |= {
            "execution_count": 1,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": stored}],
        }
        (folder / f"{name}.ipynb").write_text(json.dumps(data))
    run = run_nbval(folder, tmp_path)
    assert "1 failed, 1 passed" in run.output and "changed.ipynb" in run.output
