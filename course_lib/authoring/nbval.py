"""``make nbval``: every lesson under nbval, as an instructor's CI runs it, on the CPU or, with
``make nbval-gpu``, on a GPU.

What runs is a lesson's proof: the notebook as it lies on disk, with the cells that prove what it
says (``page_proof.py``). It runs in a folder of its own, with exercises as the course writes them
or, with ``--solved``, with the course's solutions; each exercise panel is checked, and has to say
so. With ``--both`` one kernel runs a lesson unsolved and then solved. The second time it leaves out
the cells before the first one that reads an exercise: they have run on the same files
(``nbval_kernel.py``). Nobody's exercises and progress are touched. ``notebooks/conftest.py`` adds
what nbval lets through.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.authoring import exercises
from course_lib.authoring.notebooks import VARIES, find_notebook, list_sources, read_source
from course_lib.authoring.page_proof import NAME, PageProof, describe_changes, make_page_proof
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.words import format_count
from course_lib.grading.verdict import NOT_ATTEMPTED, PASS

CELL_SECONDS = 120.0
COMPARED = "nbval-check-output"  # the tag by which nbval knows the cells whose output it compares
UNSOLVED, SOLVED = "unsolved", "solved"
# metadata of a notebook: how many of its code cells run before the cells of the second state
SECOND_PASS = "nbval_second_pass"
_SWITCH = "%put_solutions"  # defined by nbval_kernel.py
SANITIZERS = paths.NOTEBOOKS / "sanitize.cfg"
# read by notebooks/conftest.py: the mode in which every notebook has to have run
DEVICE = "COURSE_NBVAL_DEVICE"
BROKEN_ENVIRONMENT = 78  # as in course_lib/cli/app.py
# what this process or a person chose for other runs is not for the notebooks
_NOT_INHERITED = ("TRITON_INTERPRET", "PYTEST_ADDOPTS", "COURSE_EXPECT", "COURSE_DEVICE", DEVICE)


def read_built(source: Path, *, committed_first: bool = False) -> str:
    """The notebook that a script builds, with the outputs that were stored: as it lies in
    notebooks/, else as git has it, because a person may have changed the first; or in the other
    order, because a person may have run it.

    Raises: CourseError if neither is what the script builds.
    """
    want = _get_content(read_source(source))
    stored = _read_stored(find_notebook(source))
    built = next(
        (
            text
            for text in (stored[::-1] if committed_first else stored)
            if _get_content(json.loads(text)) == want
        ),
        None,
    )
    if built is None:
        raise CourseError(
            f"{paths.shown(find_notebook(source))} is not what {paths.shown(source)} builds. Run"
            " `make build`."
        )
    return built


def find_built(source: Path) -> dict:
    """The same, as a notebook's data."""
    return json.loads(read_built(source))


def _read_stored(path: Path) -> list[str]:
    texts = [path.read_text(encoding="utf-8")] if path.exists() else []
    if shutil.which("git"):
        process = subprocess.run(
            ["git", "show", f"HEAD:notebooks/{path.name}"],
            cwd=paths.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        texts += [process.stdout] if process.returncode == 0 else []
    return texts


def _get_content(notebook: dict) -> list:
    """Everything that is built from the script: cells and metadata, no outputs."""
    cells = [
        (cell["cell_type"], cell["id"], "".join(cell["source"]), cell["metadata"])
        for cell in notebook["cells"]
    ]
    return [cells, notebook["metadata"], notebook["nbformat"], notebook["nbformat_minor"]]


@dataclass(frozen=True)
class Run:
    """How lessons run: the ``states``, one after the other in one kernel, and "cpu" or "gpu"."""

    states: tuple[str, ...] = (UNSOLVED,)
    device: str = "cpu"

    @property
    def expected(self) -> str:
        """Return the verdict that each panel has at the beginning."""
        return NOT_ATTEMPTED if self.states[0] == UNSOLVED else PASS


def lay_out(folder: Path, proofs: Mapping[Path, PageProof], plan: Run) -> None:
    """Write the proofs of lessons into ``folder``/notebooks, with the stored outputs that nbval
    compares, and ``folder``/exercises.

    Every cell that prints is compared, unless its source says why the output varies in such a run
    (:func:`find_reason`).

    Args:
        proofs: by the lesson's script.
    """
    (folder / "notebooks").mkdir(parents=True)
    for source, proof in proofs.items():
        notebook = new_notebook(metadata=proof.notebook.metadata)
        for state in plan.states:
            if notebook.cells:
                metadata = {NAME: "Solutions are put in"}
                notebook.cells.append(new_code_cell(_SWITCH, id="put-solutions", metadata=metadata))
                kinds = [cell.cell_type for cell in notebook.cells]
                notebook.metadata[SECOND_PASS] = kinds.count("code")
            notebook.cells += _make_pass(proof, state, plan)
        text = json.dumps(notebook)
        (folder / "notebooks" / find_notebook(source).name).write_text(text, encoding="utf-8")
    exercises.write(folder / "exercises")
    if plan.states[0] == SOLVED:
        exercises.put_solutions(folder / "exercises")


def _make_pass(proof: PageProof, state: str, plan: Run) -> list[NotebookNode]:
    """Return the cells of a proof as they run in one state."""
    cells = copy.deepcopy(proof.notebook.cells)
    for cell in cells:
        solved, by_build = state == SOLVED, proof.stored_by_build
        reason = find_reason(cell, solved=solved, device=plan.device, stored_by_build=by_build)
        if is_printing(cell) and not reason:
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), COMPARED]
        if state != plan.states[0]:
            cell.id = f"{cell.id}-{state}"
            cell.metadata[NAME] = f"{cell.metadata.get(NAME)}, {state}"
    return cells


def is_printing(cell: dict) -> bool:
    """Return whether a code cell has a stored output that it printed."""
    return any(output["output_type"] == "stream" for output in cell.get("outputs", []))


def find_reason(cell: dict, *, solved: bool, device: str, stored_by_build: bool = True) -> str:
    """Return why a cell's output is not compared in such a run, in the author's words; "" if it is
    compared.

    The metadata ``varies`` of a cell has a reason for each kind of run in which it prints something
    else: "gpu", "solved", or "always". An output that was not stored by the build may be that of
    any kind of run.
    """
    anywhere = not stored_by_build
    is_kind = {"always": True, "solved": solved or anywhere, "gpu": device == "gpu" or anywhere}
    return next(
        (reason for kind, reason in cell["metadata"].get(VARIES, {}).items() if is_kind[kind]), ""
    )


def make_environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment for a run in ``folder``: the course of this checkout, exercises and progress
    of the folder."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    # one thread for PyTorch, unless a person asks for more: notebooks that run at a time share the
    # cores
    return (
        {"OMP_NUM_THREADS": "1"}
        | inherited
        | {
            # of pytest's process, which runs no kernel; `import course_lib` takes it back for the
            # notebooks
            "COURSE_DEFER_CHOICE": "1",
            "COURSE_EXERCISES": str(folder / "exercises"),
            "COURSE_STATE": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH")])
            ),
            **more,
        }
    )


def make_command(
    notebooks: Path, cell_seconds: float = CELL_SECONDS, workers: int = 0
) -> list[str]:
    """The pytest command for the notebooks of a folder, after putting the course's conftest.py
    beside them.

    Its rootdir is that folder: the options of the project's own tests do not reach in.
    """
    shutil.copy(paths.NOTEBOOKS / "conftest.py", notebooks)
    # loadfile: else the workers share a notebook's cells out among themselves, and each runs its
    # own in a kernel of its own
    parallel = ["-n", str(workers), "--dist", "loadfile"] if workers > 1 else ["-p", "no:xdist"]
    lean = [
        "-p",
        "course_lib.authoring.lean_nbval",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:cacheprovider",
        "-o",
        "console_output_style=classic",
    ]
    return [
        sys.executable, "-m", "pytest", "-rfEs", "-q", "--continue-on-collection-errors", *lean,
        *parallel, "--rootdir", str(notebooks), "-c", os.devnull,
        "--nbval-lax", "--nbval-sanitize-with", str(SANITIZERS), "--nbval-current-env",
        "--nbval-cell-timeout", f"{cell_seconds:g}", str(notebooks),
    ]  # fmt: skip


def require_device(device: str) -> None:
    """Raises: EnvironmentFault if ``device`` is "gpu" and PyTorch can use none."""
    if device == "gpu" and runtime.gpu_name() is None:
        raise EnvironmentFault(
            "PyTorch sees no GPU on this machine, and nothing was run: in the interpreter this run"
            " would pass without having compiled a kernel. `course doctor` says why there is no"
            " GPU; `make nbval` runs the lessons on the CPU."
        )


def run(
    lessons: list[str], plan: Run, *, workers: int, cell_seconds: float, pytest_args: list[str]
) -> int:
    """Run the lessons called ("03", or all if none is named) and show what pytest says; returns its
    exit code.

    Raises: CourseError if there is no such lesson, or a notebook cannot be read; EnvironmentFault
    without a GPU.
    """
    require_device(plan.device)
    sources = [source for source in list_sources() if not lessons or source.name[:2] in lessons]
    if missing := set(lessons) - {source.name[:2] for source in sources}:
        raise CourseError(
            f"{paths.shown(paths.NOTEBOOK_SOURCES)} has no lesson {', '.join(sorted(missing))}."
        )
    proofs = {source: make_page_proof(source) for source in sources}
    for source, proof in proofs.items():
        for sentence in describe_changes(source, proof):
            print(f"course: {sentence}", flush=True)
    with tempfile.TemporaryDirectory(prefix="course-nbval-") as scratch:
        folder = Path(scratch)
        lay_out(folder, proofs, plan)
        environment = make_environment(
            folder, COURSE_EXPECT=plan.expected, COURSE_DEVICE=plan.device, **{DEVICE: plan.device}
        )
        command = make_command(folder / "notebooks", cell_seconds, workers)
        count = format_count(len(sources), "lesson")
        states = " and then ".join(plan.states)
        print(f"course: {count} under nbval, {states}, in {plan.device.upper()} mode", flush=True)
        return subprocess.run(
            [*command, *pytest_args], cwd=paths.ROOT, env=environment, check=False
        ).returncode


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.authoring.nbval",
        description="Run the lessons under nbval. What stands after -- goes to pytest.",
    )
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 03; without one, all")
    parser.add_argument(
        "--solved", action="store_true", help="with the course's solutions in the exercises"
    )
    parser.add_argument(
        "--both", action="store_true", help="unsolved, and then solved in the same kernel"
    )
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="on a GPU, and never in Triton's interpreter; without it on the CPU",
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="how many notebooks run at a time (%(default)s)"
    )
    parser.add_argument(
        "--cell-seconds",
        type=float,
        default=CELL_SECONDS,
        help="a cell that takes longer has failed (%(default)g)",
    )
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = parser.parse_args(argv[:end])
    states = (
        (UNSOLVED, SOLVED) if arguments.both else (SOLVED,) if arguments.solved else (UNSOLVED,)
    )
    plan = Run(states, "gpu" if arguments.gpu else "cpu")
    try:
        return run(
            arguments.lessons,
            plan,
            workers=arguments.workers,
            cell_seconds=arguments.cell_seconds,
            pytest_args=argv[end + 1 :],
        )
    except EnvironmentFault as fault:
        print(f"course: {fault}", file=sys.stderr)
        return BROKEN_ENVIRONMENT
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
