"""``make nbval``: every lesson under nbval, as an instructor's CI runs it, on the CPU or, with ``make nbval-gpu``, on a GPU.

What runs is a lesson's proof: the learner's page with the cells that prove what it says. It runs in a folder of its own, with exercises
as the course writes them or, with ``--solved``, with the course's solutions; each exercise panel is checked, and has to say so.
Nobody's exercises and progress are touched. ``notebooks/conftest.py`` adds what nbval lets through.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat

from course_lib import catalog
from course_lib.authoring import exercises
from course_lib.authoring.notebooks import VARIES, find_answers, find_notebook, list_sources, read_source
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.words import format_count
from course_lib.grading.verdict import NOT_ATTEMPTED, PASS

CELL_SECONDS = 120.0
COMPARED = "nbval-check-output"  # the tag by which nbval knows the cells whose output it compares
SANITIZERS = paths.NOTEBOOKS / "sanitize.cfg"
DEVICE = "COURSE_NBVAL_DEVICE"  # read by notebooks/conftest.py: the mode in which every notebook has to have run
BROKEN_ENVIRONMENT = 78  # as in course_lib/cli/app.py
# what this process or a person chose for other runs is not for the notebooks
_NOT_INHERITED = ("TRITON_INTERPRET", "PYTEST_ADDOPTS", "COURSE_EXPECT", "COURSE_DEVICE", DEVICE)


def read_built(source: Path, *, committed_first: bool = False) -> str:
    """The notebook that a script builds, with the outputs that were stored: as it lies in notebooks/, else as git has it, because a person
    may have changed the first; or in the other order, because a person may have run it.

    Raises: CourseError if neither is what the script builds.
    """
    want = _get_content(read_source(source))
    stored = _read_stored(find_notebook(source))
    found = next((text for text in (stored[::-1] if committed_first else stored) if _get_content(json.loads(text)) == want), None)
    if found is None:
        raise CourseError(f"{paths.shown(find_notebook(source))} is not what {paths.shown(source)} builds. Run `make notebooks`.")
    return found


def find_built(source: Path) -> dict:
    """The same, as a notebook's data."""
    return json.loads(read_built(source))


def _read_stored(path: Path) -> list[str]:
    texts = [path.read_text(encoding="utf-8")] if path.exists() else []
    if shutil.which("git"):
        done = subprocess.run(["git", "show", f"HEAD:notebooks/{path.name}"], cwd=paths.ROOT, capture_output=True, text=True, check=False)
        texts += [done.stdout] if done.returncode == 0 else []
    return texts


def _get_content(notebook: dict) -> list:
    """Everything that is built from the script: cells and metadata, no outputs."""
    cells = [(cell["cell_type"], cell["id"], "".join(cell["source"]), cell["metadata"]) for cell in notebook["cells"]]
    return [cells, notebook["metadata"], notebook["nbformat"], notebook["nbformat_minor"]]


def lay_out(folder: Path, sources: Sequence[Path], *, solved: bool, device: str) -> None:
    """Write the proofs of lessons into ``folder``/notebooks, with the stored outputs that nbval compares, and ``folder``/exercises.

    Every cell that prints is compared, unless its source says why the output varies in such a run (:func:`find_reason`).

    Args:
        device: "cpu" or "gpu", where the lessons will run.

    Raises: CourseError if a notebook is not what its script builds.
    """
    (folder / "notebooks").mkdir(parents=True)
    for source in sources:
        proof = read_proof(source)
        for cell in proof.cells:
            if is_printing(cell) and not find_reason(cell, solved=solved, device=device):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), COMPARED]
        (folder / "notebooks" / find_notebook(source).name).write_text(json.dumps(proof), encoding="utf-8")
    exercises.write(folder / "exercises")
    if solved:
        for exercise in catalog.exercises().values():
            shutil.copy(paths.SOLUTIONS / f"{exercise.file}.py", folder / "exercises")


def read_proof(source: Path) -> nbformat.NotebookNode:
    """Return the proof of a lesson with the outputs that were stored with its page, those of answers included.

    Raises: CourseError if the notebook is not what the script builds.
    """
    proof = read_source(source, proof=True)
    page, answers = nbformat.reads(read_built(source), as_version=4), nbformat.read(find_answers(source.stem), as_version=4)
    stored = {
        cell.id: cell for cell in page.cells + answers.cells if cell.cell_type == "code"
    }  # an answer has its output in `answers` alone
    for cell in proof.cells:
        if cell.id in stored:
            cell.update({name: stored[cell.id][name] for name in ("outputs", "execution_count")})
    return proof


def is_printing(cell: dict) -> bool:
    """Return whether a code cell has a stored output that it printed."""
    return any(output["output_type"] == "stream" for output in cell.get("outputs", []))


def find_reason(cell: dict, *, solved: bool, device: str) -> str:
    """Return why a cell's output is not compared in such a run, in the author's words; "" if it is compared.

    The metadata ``varies`` of a cell has a reason for each kind of run in which it prints something else: "gpu", "solved", or "always".
    """
    is_kind = {"always": True, "solved": solved, "gpu": device == "gpu"}
    return next((reason for kind, reason in cell["metadata"].get(VARIES, {}).items() if is_kind[kind]), "")


def make_environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment for a run in ``folder``: the course of this checkout, exercises and progress of the folder."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return inherited | {
        "COURSE_DEFER_CHOICE": "1",  # of pytest's process, which runs no kernel; `import course_lib` takes it back for the notebooks
        "COURSE_EXERCISES": str(folder / "exercises"),
        "COURSE_STATE": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH")])),
        **more,
    }


def make_command(notebooks: Path, cell_seconds: float = CELL_SECONDS, workers: int = 0) -> list[str]:
    """The pytest command for the notebooks of a folder, after putting the course's conftest.py beside them.

    Its rootdir is that folder: the options of the project's own tests do not reach in.
    """
    shutil.copy(paths.NOTEBOOKS / "conftest.py", notebooks)
    # loadfile: else the workers share a notebook's cells out among themselves, and each runs its own in a kernel of its own
    parallel = ["-n", str(workers), "--dist", "loadfile"] if workers > 1 else ["-p", "no:xdist"]
    lean = ["-p", "course_lib.authoring.lean_nbval", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    return [
        sys.executable, "-m", "pytest", "-rfEs", "-q", "--continue-on-collection-errors", *lean, *parallel, "--rootdir", str(notebooks), "-c", os.devnull,
        "--nbval-lax", "--nbval-sanitize-with", str(SANITIZERS), "--nbval-current-env", "--nbval-cell-timeout", f"{cell_seconds:g}", str(notebooks),
    ]  # fmt: skip


def require_device(device: str) -> None:
    """Raises: EnvironmentFault if ``device`` is "gpu" and PyTorch can use none."""
    if device == "gpu" and runtime.gpu_name() is None:
        raise EnvironmentFault(
            "PyTorch sees no GPU on this machine, and nothing was run: in the interpreter this run would pass without having "
            "compiled a kernel. `course doctor` says why there is no GPU; `make nbval` runs the lessons on the CPU."
        )


def run(lessons: list[str], *, solved: bool, device: str, workers: int, cell_seconds: float, pytest_args: list[str]) -> int:
    """Run the lessons called ("03", or all if none is named) and show what pytest says; returns its exit code.

    Raises: CourseError if there is no such lesson, or a notebook is not what its script builds; EnvironmentFault without a GPU.
    """
    require_device(device)
    sources = [source for source in list_sources() if not lessons or source.name[:2] in lessons]
    if missing := set(lessons) - {source.name[:2] for source in sources}:
        raise CourseError(f"{paths.shown(paths.NOTEBOOK_SOURCES)} has no lesson {', '.join(sorted(missing))}.")
    with tempfile.TemporaryDirectory(prefix="course-nbval-") as scratch:
        folder = Path(scratch)
        lay_out(folder, sources, solved=solved, device=device)
        environment = make_environment(folder, COURSE_EXPECT=PASS if solved else NOT_ATTEMPTED, COURSE_DEVICE=device, **{DEVICE: device})
        command = make_command(folder / "notebooks", cell_seconds, workers)
        count = format_count(len(sources), "lesson")
        print(f"course: {count} under nbval, {'solved' if solved else 'unsolved'}, in {device.upper()} mode", flush=True)
        return subprocess.run([*command, *pytest_args], cwd=paths.ROOT, env=environment, check=False).returncode


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.authoring.nbval", description="Run the lessons under nbval. What stands after -- goes to pytest."
    )
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 03; without one, all")
    parser.add_argument("--solved", action="store_true", help="with the course's solutions in the exercises")
    parser.add_argument("--gpu", action="store_true", help="on a GPU, and never in Triton's interpreter; without it on the CPU")
    parser.add_argument("--workers", type=int, default=2, help="how many notebooks run at a time (%(default)s)")
    parser.add_argument("--cell-seconds", type=float, default=CELL_SECONDS, help="a cell that takes longer has failed (%(default)g)")
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = parser.parse_args(argv[:end])
    try:
        return run(
            arguments.lessons, solved=arguments.solved, device="gpu" if arguments.gpu else "cpu", workers=arguments.workers,
            cell_seconds=arguments.cell_seconds, pytest_args=argv[end + 1 :],
        )  # fmt: skip
    except EnvironmentFault as fault:
        print(f"course: {fault}", file=sys.stderr)
        return BROKEN_ENVIRONMENT
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
