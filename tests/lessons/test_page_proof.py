"""nbval proves the notebook that lies on disk: as a person left it, with the cells that prove
it."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.authoring import nbval, notebooks, page_proof
from course_lib.authoring.notebooks import list_sources, read_source
from course_lib.authoring.page_proof import describe_changes, make_page_proof, match_cells
from course_lib.base import paths
from course_lib.base.errors import CourseError

pytest.importorskip("nbval", reason="nbval is not installed; `make env` installs it")
SCRIPT = """# %% [markdown]
# # A lesson
# It adds up.

# %%
import course_lib

# %%
total = 2 + 3
print(total)
print("is the sum")

# %% tags=["check"]
assert total == 5

# %%
print(total + 1)
"""
PRINTED = {2: "5\nis the sum\n", 3: "6\n"}  # by the number of the code cell
REAL = next(source for source in list_sources() if source.name.startswith("03"))


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """Return a function that makes a script and its notebook, in folders of the test's own."""
    scripts, pages = tmp_path / "source", tmp_path / "notebooks"
    scripts.mkdir()
    pages.mkdir()
    (pages / "conftest.py").symlink_to(paths.NOTEBOOKS / "conftest.py")
    answers = tmp_path / "answers.json"
    nbformat.write(new_notebook(), answers)
    monkeypatch.setattr(paths, "NOTEBOOK_SOURCES", scripts)
    monkeypatch.setattr(paths, "NOTEBOOKS", pages)
    monkeypatch.setattr(notebooks, "find_answers", lambda name: answers)

    def make(name: str, script: str = SCRIPT, printed: dict[int, str] = PRINTED):
        """Write both, with the outputs that a build stores. Return notebook, code cells and
        file."""
        source = scripts / f"{name}.py"
        source.write_text(script, encoding="utf-8")
        notebook = read_source(source)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, cell in enumerate(code, start=1):
            cell.execution_count = number
        for number, text in printed.items():
            code[number - 1].outputs = [new_output("stream", name="stdout", text=text)]
        page = pages / f"{name}.ipynb"
        nbformat.write(notebook, page)
        return notebook, code, page

    return make


def save_as_jupyterlab(notebook, code, page) -> None:
    """Store the notebook as JupyterLab stores it after some cells were run again."""
    notebook.metadata["language_info"] |= {"version": "3.11.2", "pygments_lexer": "ipython3"}
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {
            "state": {},
            "version_major": 2,
            "version_minor": 0,
        }
    }
    for place, cell in enumerate(notebook.cells):
        cell.id = f"{place:x}f3a-{place}"
        cell.metadata["trusted"] = True
    for count, cell in zip((40, 7, None), code, strict=True):
        cell.execution_count = count
    code[1].outputs = [
        new_output("stream", name="stdout", text=text) for text in ("5\n", "is the sum\n")
    ]
    view = {
        "application/vnd.jupyter.widget-view+json": {
            "model_id": "8a",
            "version_major": 2,
            "version_minor": 0,
        }
    }
    code[0].outputs = [new_output("display_data", data=view | {"text/plain": "Box()"})]
    nbformat.write(notebook, page)


@pytest.mark.slow
def test_what_lies_on_disk_is_what_runs(lessons, capfd):
    """One run: a page with an error, one with an output that is no longer true, one that JupyterLab
    saved, and one as it was built.
    """
    notebook, code, broken = lessons("96_error")
    code[1].source = "total = summ(2, 3)\nprint(total)"
    nbformat.write(notebook, broken)
    lessons("97_output", printed={2: "4\nis the sum\n", 3: "6\n"})
    save_as_jupyterlab(*lessons("98_saved"))
    lessons("95_sound")
    exit_code = nbval.main(["--workers", "1"])
    printed = capfd.readouterr().out
    assert exit_code == 1, printed
    lines = printed.splitlines()
    assert (
        lines[0].startswith("course: ")
        and "96_error.ipynb is not what" in lines[0]
        and "cell 2 is changed" in lines[0]
    )
    assert "source/96_error.py, too" in lines[0] and "overwrites it" in lines[0]
    assert lines[1] == "course: 4 lessons under nbval, unsolved, in CPU mode", printed
    failed = {
        line
        for line in lines
        if line.endswith(" failed") and "check" not in line and ": Cell" in line
    }
    assert failed == {
        f"{cell} failed"
        for cell in ("96_error.ipynb: Cell 2", "96_error.ipynb: Cell 3", "97_output.ipynb: Cell 2")
    }
    assert re.search(r"^FAILED \S*96_error\.ipynb::Cell 2\b", printed, re.MULTILINE)
    assert "NameError: name 'summ' is not defined" in printed and "\x1b" not in printed
    assert (
        "96_error.ipynb: Cell 2 failed" in lines and "95_sound.ipynb: 4 cells, all passed" in lines
    )
    assert "98_saved.ipynb: 4 cells, all passed" in lines
    assert "- was stored, + came\n- 4\n+ 5\n  is the sum\n" in printed


@pytest.mark.slow
def test_the_second_state_runs_what_may_depend_on_an_exercise_and_nothing_above(lessons, capfd):
    begin = "# %%\nimport course_lib\n\n"
    count = "# %%\ncourse_lib.runs = getattr(course_lib, 'runs', 0) + 1\nname = 'above'\n\n"
    read = (
        "# %%\ntext = (course_lib.base.paths.exercises() / 'ex00a_masked_copy.py').read_text()\n\n"
    )
    # it could read an exercise
    start_process = "# %%\nimport subprocess\nsubprocess.run(['true'], check=True)\n\n"
    is_solved = '# %% tags=["check"]\nimport os\nsolved = os.environ["COURSE_EXPECT"] == "pass"\n'
    # a name that a later cell takes for something else has its old value again, and one that only
    # it gives has none
    rebind = "assert name == 'above' and 'late' not in globals()\n\n# %%\nname, late = 'below', 1\n"
    lessons(
        "95_reads",
        f'{begin}{count}{read}{is_solved}assert course_lib.runs == 1 and ("YOUR CODE" in text) !='
        f" solved\n{rebind}",
        {},
    )
    lessons(
        "96_starts",
        f"{begin}{start_process}{count}{is_solved}assert course_lib.runs == 1 + solved\n",
        {},
    )
    lessons(
        "97_never", f"{begin}{count}{is_solved}assert course_lib.runs == 1 and not solved\n", {}
    )
    exit_code = nbval.main(["--workers", "1", "--both"])
    printed = capfd.readouterr().out
    assert exit_code == 0 and "21 passed, 6 skipped" in printed, printed
    assert "neither it nor a cell above it reads an exercise" in printed


def names(proof) -> list[str]:
    return [
        cell.metadata[page_proof.NAME] for cell in proof.notebook.cells if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_page_may_be_saved_anew_and_says_the_same(lessons, has_ids):
    notebook, code, page = lessons("98_saved")
    save_as_jupyterlab(notebook, code, page)
    if not has_ids:  # as notebooks were before version 4.5 of their format
        notebook.nbformat_minor = 4
        for cell in notebook.cells:
            del cell["id"]
        nbformat.write(notebook, page)
    proof = make_page_proof(paths.NOTEBOOK_SOURCES / "98_saved.py")
    assert proof.changes == () and not proof.stored_by_build and not proof.never_run
    assert describe_changes(page, proof) == []
    assert names(proof) == ["Cell 1", "Cell 2", "Cell 2, check in 98_saved.py line 13", "Cell 3"]
    assert [cell.execution_count for cell in proof.notebook.cells if cell.cell_type == "code"] == [
        1,
        1,
        None,
        1,
    ]


def test_each_change_of_a_page_is_listed_and_check_cells_keep_their_place(lessons):
    notebook, code, page = lessons("98_edited")
    source = paths.NOTEBOOK_SOURCES / "98_edited.py"
    notebook.cells[0].source += " Slowly."
    code[1].source = "total = 3 + 2\n" + code[1].source.split("\n", 1)[1]
    notebook.cells[3:3] = [new_code_cell("print('added')"), new_markdown_cell("Added, too.")]
    nbformat.write(notebook, page)
    proof = make_page_proof(source)
    assert proof.changes == (
        "the text at the top is changed",
        "cell 2 is changed",
        "cell 3 is new",
        "the text after cell 3 is new",
    )
    assert names(proof) == [
        "Cell 1",
        "Cell 2",
        "Cell 3",
        "Cell 3, check in 98_edited.py line 13",
        "Cell 4",
    ]
    assert proof.never_run == ("Cell 3",)
    told = describe_changes(source, proof)
    assert (
        len(told) == 2
        and "98_edited.py, too" in told[0]
        and "no stored output of 1 code cell (Cell 3)" in told[1]
    )
    del notebook.cells[2:5]
    nbformat.write(notebook, page)
    removed = make_page_proof(source)
    assert removed.changes == (
        "the text at the top is changed",
        "the cell that begins with 'total = 2 + 3' is missing",
    )
    assert names(removed) == ["Cell 1", "Cell 1, check in 98_edited.py line 13", "Cell 2"]


def test_a_page_that_is_no_notebook_is_named(lessons):
    _, _, page = lessons("98_torn")
    source = paths.NOTEBOOK_SOURCES / "98_torn.py"
    for text in ("<<<<<<< HEAD\n{}", "[]", "{}"):
        page.write_text(text)
        with pytest.raises(
            CourseError,
            match=(
                r"98_torn\.ipynb cannot be read as a notebook: .* `python -m"
                r" course_lib\.authoring\.notebooks 98`"
            ),
        ):
            make_page_proof(source)
    page.unlink()
    with pytest.raises(CourseError, match=r"98_torn\.ipynb is not there"):
        make_page_proof(source)


@pytest.fixture
def real_page(tmp_path, monkeypatch):
    """Lesson 03, to be changed."""
    page = tmp_path / f"{REAL.stem}.ipynb"
    page.write_bytes((paths.NOTEBOOKS / page.name).read_bytes())
    monkeypatch.setattr(page_proof, "find_notebook", lambda source: page)
    return page


def change(page: Path, old: str, new: str) -> str:
    """Change the one cell that has ``old``, and return the cell that proves it."""
    notebook = nbformat.read(page, as_version=4)
    (cell,) = [cell for cell in notebook.cells if old in cell.source]
    cell.source = cell.source.replace(old, new)
    nbformat.write(notebook, page)
    proof = make_page_proof(REAL)
    assert len(proof.changes) == 1
    return next(proved.source for proved in proof.notebook.cells if proved.id == cell.id)


def test_a_step_runs_with_the_courses_answer_where_it_is_still_asked_for(real_page):
    proved = change(
        real_page, "# fp32: the largest relative error", "# in fp32 the largest relative error"
    )
    assert (
        "# in fp32" in proved
        and "kappa = (2.0**-12 / u) ** 0.5" in proved
        and "YOUR CODE" not in proved
    )
    assert proved.splitlines()[-1].endswith('assert_passed("03-half")')


def test_a_step_that_somebody_answered_on_the_page_is_judged_as_it_stands(real_page):
    task = "# YOUR CODE, 1 line: kappa, from u * kappa**2 == 2.0**-12.\n"
    proved = change(real_page, task, "kappa = 63.0\n")
    assert (
        "kappa = 63.0" in proved
        and "kappa = (" not in proved
        and proved.splitlines()[-1].endswith('assert_passed("03-half")')
    )


def test_an_answer_has_the_output_that_was_kept_beside_the_page_unless_it_was_run_there(real_page):
    def find_output(proof) -> str:
        return next(
            cell.outputs[0].text
            for cell in proof.notebook.cells
            if "total = total + np.float16(1)" in cell.source and cell.outputs
        )

    assert find_output(make_page_proof(REAL)) == "2048\n"
    notebook = nbformat.read(real_page, as_version=4)
    (cell,) = [cell for cell in notebook.cells if "total = total + np.float16(1)" in cell.source]
    cell.outputs = [new_output("stream", name="stdout", text="4096\n")]
    nbformat.write(notebook, real_page)
    assert find_output(make_page_proof(REAL)) == "4096\n"


def test_cells_are_matched_by_text_then_by_likeness_then_by_id():
    built = [
        new_code_cell(text, id=f"c{n}")
        for n, text in enumerate(("a = 1", "print(a)", "show_picture(rows=12)", "print(a)"))
    ]
    page = [
        new_code_cell("print(a)", id="x1"),
        new_code_cell("show_picture(rows=16)", id="x2"),
        new_code_cell("print(a)", id="x3"),
    ]
    assert match_cells(page, built) == {0: 1, 1: 2, 2: 3}
    page = [
        new_code_cell("a = 1", id="y"),
        new_code_cell("something_else()", id="c1"),
        new_code_cell("quite another", id="z"),
    ]
    assert match_cells(page, built) == {0: 0, 1: 1}
