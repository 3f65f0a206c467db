"""``make notebooks``: build the lessons from their percent scripts, and run them so that figures are inside.

A lesson is built as a newcomer meets it: on the CPU, with unsolved exercises and no progress, none of it the author's
own. ``python -m course_lib.authoring.notebooks 06 07`` builds only those lessons.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from course_lib.authoring import exercises
from course_lib.base import paths, runtime
from course_lib.base.files import write_atomic
from course_lib.lessons.live import without_live_views

_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}
_CELL_SECONDS = 120


def list_sources() -> list[Path]:
    """Every lesson's script, in the order of the course."""
    return sorted(paths.NOTEBOOK_SOURCES.glob("*.py"))


def find_notebook(source: Path) -> Path:
    return paths.NOTEBOOKS / f"{source.stem}.ipynb"


def read_source(source: Path) -> nbformat.NotebookNode:
    """The notebook of a script, without outputs. The same script gives the same bytes: cells are numbered, not given random ids."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03}"
    return notebook


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
    )
    # what this process chose for itself is not for the lesson, whose first cell chooses anew
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    client.execute(env=inherited | environment)


def run_unsolved(notebook: nbformat.NotebookNode) -> None:
    """Run every cell in place, with unsolved exercises and no progress, none of it the author's own.

    Raises: nbclient's CellExecutionError or CellTimeoutError at the first cell that fails; CourseError if an exercise cannot be cut.
    """
    with tempfile.TemporaryDirectory(prefix="course-build-") as scratch:
        folder = Path(scratch)
        exercises.write(folder / "exercises")
        execute(
            notebook, paths.NOTEBOOKS, COURSE_EXERCISES=str(folder / "exercises"), COURSE_STATE=str(folder / "state"),
            PYTHONPATH=str(paths.ROOT), **({"COURSE_DEVICE": "cpu"} if runtime.gpu_name() else {}),
        )  # fmt: skip


def build(source: Path) -> float:
    """Build and run one lesson; returns the seconds it took to run."""
    notebook = read_source(source)
    started = time.monotonic()
    run_unsolved(notebook)
    without_live_views(notebook)
    notebook.metadata = nbformat.from_dict(_METADATA)  # running adds this machine's Python version
    for cell in notebook.cells:
        _join_streams(cell)
    write_atomic(find_notebook(source), nbformat.writes(notebook) + "\n")
    return time.monotonic() - started


def _join_streams(cell: nbformat.NotebookNode) -> None:
    """One output for what a cell prints: how it is cut into messages depends on the machine's load."""
    joined: list[nbformat.NotebookNode] = []
    for output in cell.get("outputs", []):
        if joined and output.output_type == joined[-1].output_type == "stream" and output.name == joined[-1].name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    if "outputs" in cell:
        cell["outputs"] = joined


def main(wanted: list[str]) -> int:
    chosen = [source for source in list_sources() if not wanted or source.name[:2] in wanted]
    if not chosen:
        print(
            f"course: no lesson in {paths.shown(paths.NOTEBOOK_SOURCES)} starts with {' or '.join(wanted)}.",
            file=sys.stderr,
        )
        return 1
    for source in chosen:
        try:
            print(f"{find_notebook(source).name}: built in {build(source):.0f} s", flush=True)
        except (CellExecutionError, CellTimeoutError) as broken:
            print(f"course: {paths.shown(source)} does not run:\n{broken}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
