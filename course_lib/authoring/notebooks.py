"""``python -m course_lib.authoring.notebooks``: build the lessons from their percent scripts, and
run them so that figures are inside.

A lesson is built as a newcomer meets it: on the CPU, with unsolved exercises and no progress, none
of it the author's own. ``python -m course_lib.authoring.notebooks 06 07`` builds only those
lessons. With ``--pictures`` no lesson is run: its saved pictures get the scripts of today, and keep
their data.

A script makes two notebooks. The learner's lacks the cells tagged ``check``, which prove what the
page says, and those tagged ``values``, which compute numbers for its prose (``prose.py``). Its code
cells tagged ``answer``, before which a prediction stands, are shipped without output, and name the
predictions that they answer, so that their output stays closed until these are made
(``lessons/answers.py``). The web site shows that output in a fold: it is kept in ``site/answers``.
Its cells tagged ``step`` are cut as an exercise is cut from its solution. A heading tagged ``dive``
is folded with all that stands under it. The proof has every cell, solved: tests run it, and it
raises if the course's answer to a step does not pass.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat.v4 import new_notebook

from course_lib.authoring import exercises, prose, stills
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.catalog.cut import drop_marks
from course_lib.catalog.step_cells import cut_cell
from course_lib.lessons import answers
from course_lib.lessons.kit.output import read_picture
from course_lib.lessons.live import without_live_views

_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}
_CELL_SECONDS = 120
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # in a traceback
# the calls of a page that ask the learner for something: the function and its id
CALL = re.compile(r'^(predict|exercise|review_predictions|step|recall)\("([^"]+)"\)', re.MULTILINE)
# each sitting of a lesson begins with the cell that says so
MINUTES = re.compile(r"^\*(?:About|约) (\d+) (?:minutes|分钟)", re.MULTILINE)
_ASKS = re.compile(r'^predict\("([^"]+)"\)', re.MULTILINE)
_NEXT = re.compile(r"(?<=^\*\*Next:\*\* )lesson (\d\d)", re.MULTILINE)
CHECK, ANSWER, STEP, DIVE = "check", "answer", "step", "dive"  # tags of cells
# metadata of a cell: why nbval does not compare what it prints (nbval.find_reason)
VARIES = "varies"


def list_sources() -> list[Path]:
    """Every lesson's script, in the order of the course."""
    return sorted(paths.NOTEBOOK_SOURCES.glob("*.py"))


def find_notebook(source: Path) -> Path:
    return paths.NOTEBOOKS / f"{source.stem}.ipynb"


def find_answers(name: str) -> Path:
    """The file with a lesson's code cells tagged ``answer`` and their outputs, by the lesson's
    name: a notebook that no linter takes for code."""
    return Path(__file__).parent / "site" / "answers" / f"{name}.json"


def read_with_answers(file: Path) -> nbformat.NotebookNode:
    """A built notebook with the outputs that :func:`build` took out of it.

    Raises: CourseError if the notebook and these outputs were not built together.
    """
    notebook = nbformat.read(file, as_version=4)
    answers_notebook = nbformat.read(find_answers(file.stem), as_version=4)
    cells = [cell for cell in notebook.cells if _is_code_answer(cell)]
    if [(cell.id, cell.source) for cell in cells] != [
        (cell.id, cell.source) for cell in answers_notebook.cells
    ]:
        raise CourseError(
            f"{paths.shown(find_answers(file.stem))} has the outputs of other code than"
            f" {paths.shown(file)}. `python -m course_lib.authoring.notebooks {file.name[:2]}`"
            " builds both."
        )
    for cell, answer in zip(cells, answers_notebook.cells, strict=True):
        cell.outputs = answer.outputs
    return notebook


def read_script(source: Path) -> nbformat.NotebookNode:
    """Return every cell of a lesson's script as it stands there, with the ids that the cells have
    in both notebooks."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03}"
    return notebook


def list_cell_lines(source: Path) -> dict[str, int]:
    """Return the line of a lesson's script on which each cell begins, by the cell's id."""
    lines = source.read_text(encoding="utf-8").splitlines()
    begins = [number for number, line in enumerate(lines, start=1) if line.startswith("# %%")]
    return {f"cell-{number:03}": line for number, line in enumerate(begins)}


def read_source(source: Path, *, proof: bool = False, filled: bool = True) -> nbformat.NotebookNode:
    """The learner's notebook of a script, or its proof, without outputs. The same script gives the
    same bytes: cells are numbered, not given random ids, and have the same number in both. With
    ``filled=False`` the learner's prose keeps its ``{{name}}``."""
    notebook = read_script(source)
    if not proof:
        if filled:
            prose.fill(notebook.cells, source)
        notebook.cells = [
            cell for cell in notebook.cells if not {CHECK, prose.VALUES} & set(_get_tags(cell))
        ]
        _name_questions(notebook.cells)
    for cell in notebook.cells:
        tags = _get_tags(cell)
        if not proof:
            cell.metadata.pop(VARIES, None)
        if cell.cell_type == "markdown":
            cell.source = _NEXT.sub(_link_lesson, cell.source)
        if STEP in tags:
            where = f"{paths.shown(source)}, {cell['id']}"
            cell.source = _prove(drop_marks(cell.source)) if proof else cut_cell(cell.source, where)
        if DIVE in tags and not proof:
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
    return notebook


def _name_questions(cells: Sequence[nbformat.NotebookNode]) -> None:
    """Write into the metadata of each answer which predictions it answers: those that stand
    together above it."""
    question_ids: list[str] = []
    above_asks = False
    for cell in cells:
        ids = _ASKS.findall(cell.source)
        if ids and cell.cell_type == "code":
            question_ids = [*question_ids, *ids] if above_asks else ids
        above_asks = bool(ids)
        if question_ids and _is_code_answer(cell):
            cell.metadata[answers.METADATA] = question_ids


def _link_lesson(match: re.Match[str]) -> str:
    """A lesson's name as a link to its notebook; its name alone if there is no such lesson yet."""
    sources = [source for source in list_sources() if source.stem[:2] == match[1]]
    return f"[{match[0]}]({find_notebook(sources[0]).name})" if sources else match[0]


def _prove(solved: str) -> str:
    """A step's solved cell, with a last line that raises if the step does not pass."""
    ids = re.findall(r"^step\(([^)]+)\)", solved, re.MULTILINE)
    proofs = "; ".join(f"assert_passed({step_id})" for step_id in ids)
    return (
        f"{solved}\nfrom course_lib.lessons.stepping import assert_passed; {proofs}"
        if ids
        else solved
    )


def _get_tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def _is_code_answer(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code" and ANSWER in _get_tags(cell)


def execute(notebook: nbformat.NotebookNode, folder: Path, **environment: str) -> None:
    """Run every cell in place, in a kernel with ``environment`` added, working in ``folder``.

    Raises: nbclient's CellExecutionError or CellTimeoutError at the first cell that fails.
    """
    client = NotebookClient(
        notebook,
        timeout=_CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        # that it speaks TCP on this machine is no news to an author
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    # what this process chose for itself is not for the lesson, whose first cell chooses anew
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    client.execute(env=inherited | environment)


def run_unsolved(notebook: nbformat.NotebookNode) -> None:
    """Run every cell in place, with unsolved exercises and no progress, none of it the author's
    own.

    Raises: nbclient's CellExecutionError or CellTimeoutError at the first cell that fails;
    CourseError if an exercise cannot be cut.
    """
    with tempfile.TemporaryDirectory(prefix="course-build-") as scratch:
        folder = Path(scratch)
        exercises.write(folder / "exercises")
        execute(
            notebook, paths.NOTEBOOKS, COURSE_EXERCISES=str(folder / "exercises"),
            COURSE_STATE=str(folder / "state"),
            PYTHONPATH=str(paths.ROOT), **({"COURSE_DEVICE": "cpu"} if runtime.gpu_name() else {}),
        )  # fmt: skip


def build(source: Path) -> float:
    """Build and run one lesson; returns the seconds it took to run."""
    notebook = read_source(source)
    started = time.monotonic()
    run_unsolved(notebook)
    without_live_views(notebook)
    stills.add_pngs(notebook)
    notebook.metadata = nbformat.from_dict(_METADATA)  # running adds this machine's Python version
    for cell in notebook.cells:
        _join_streams(cell)
    answered = [cell for cell in notebook.cells if _is_code_answer(cell)]
    answers_notebook = new_notebook(cells=copy.deepcopy(answered), metadata=notebook.metadata)
    for cell in answered:
        cell.outputs = []
    answers_file = find_answers(source.stem)
    answers_file.parent.mkdir(exist_ok=True)
    write_atomic(answers_file, nbformat.writes(answers_notebook) + "\n")
    write_atomic(find_notebook(source), nbformat.writes(notebook) + "\n")
    return time.monotonic() - started


def renew_pictures(source: Path) -> None:
    """Write the saved pictures of a lesson with the scripts of today. Their data stays as it is."""
    for file in filter(Path.exists, (find_notebook(source), find_answers(source.stem))):
        notebook = nbformat.read(file, as_version=4)
        for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
            if (picture := read_picture(output.get("data", {}).get("text/html", ""))) is not None:
                output.data["text/html"] = picture.make_html()
        stills.add_pngs(notebook)
        write_atomic(file, nbformat.writes(notebook) + "\n")


def _join_streams(cell: nbformat.NotebookNode) -> None:
    """One output for what a cell prints: how it is cut into messages depends on the machine's
    load."""
    joined: list[nbformat.NotebookNode] = []
    for output in cell.get("outputs", []):
        if (
            joined
            and output.output_type == joined[-1].output_type == "stream"
            and output.name == joined[-1].name
        ):
            joined[-1].text += output.text
        else:
            joined.append(output)
    if "outputs" in cell:
        cell["outputs"] = joined


def main(arguments: list[str]) -> int:
    with_pictures_alone = "--pictures" in arguments
    arguments = [word for word in arguments if word != "--pictures"]
    chosen = [source for source in list_sources() if not arguments or source.name[:2] in arguments]
    if not chosen:
        print(
            f"course: no lesson in {paths.shown(paths.NOTEBOOK_SOURCES)} starts with"
            f" {' or '.join(arguments)}.",
            file=sys.stderr,
        )
        return 1
    for source in chosen:
        if with_pictures_alone:
            renew_pictures(source)
            continue
        try:
            print(f"{find_notebook(source).name}: built in {build(source):.0f} s", flush=True)
        except (CellExecutionError, CellTimeoutError) as broken:
            words = str(broken) if sys.stderr.isatty() else COLOURS.sub("", str(broken))
            print(f"course: {paths.shown(source)} does not run:\n{words.rstrip()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
