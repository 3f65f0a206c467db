"""A git filter: a notebook that was only opened and run looks unchanged to git. Git and JupyterLab
start this file as a program.

JupyterLab writes outputs, execution counts and the version of Python into each notebook that it
saves. ``watch`` makes this file git's clean filter for notebooks (the attribute ``filter=lesson``
in ``.gitattributes``): while no cell is changed, the filter returns the text that git has already.
Git does not run the filter on a file whose size has changed, so ``tools/jupyter`` calls
``note_saved`` after each save.

This file imports nothing of the course, so that ``git status`` stays fast.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def watch(root: Path) -> None:
    """Configure the filter in the checkout at ``root``; elsewhere do nothing."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return
    python = shlex.quote(sys.executable)
    # `make clean` removes this Python; afterwards `cat` gives git each notebook as it is
    command = (
        f"if [ -x {python} ]; then {python} -I {shlex.quote(str(Path(__file__).resolve()))} %f;"
        " else cat; fi"
    )
    subprocess.run(["git", "config", "filter.lesson.clean", command], cwd=root, check=False)


def note_saved(file: Path) -> None:
    """Make git compare ``file`` with its index; if no cell was changed, make git record the new
    size."""
    if (
        subprocess.run(
            ["git", "diff", "--quiet", "--", file.name], cwd=file.parent, check=False
        ).returncode
        == 0
    ):
        subprocess.run(["git", "add", "--update", "--", file.name], cwd=file.parent, check=False)


def clean(name: str, text: bytes) -> bytes:
    """Return git's own text of the notebook ``name`` if ``text`` differs from it only by a run;
    otherwise ``text``."""
    committed = subprocess.run(
        ["git", "cat-file", "blob", f":{name}"], capture_output=True, check=False
    )
    if committed.returncode:
        return text  # git does not have the file yet
    try:
        notebook, committed_notebook = json.loads(text), json.loads(committed.stdout)
        # The course builds notebooks without the version of Python, so a newly built notebook never
        # counts as merely run.
        ran = "version" in notebook["metadata"]["language_info"]
        return (
            committed.stdout
            if ran and _list_cells(notebook) == _list_cells(committed_notebook)
            else text
        )
    except (ValueError, KeyError, TypeError):
        return text  # not a notebook, or a damaged one: git gets it as it is


def _list_cells(notebook: dict) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


if __name__ == "__main__":
    if sys.argv[1] == "--saved":
        note_saved(Path(sys.argv[2]))
    else:
        sys.stdout.buffer.write(clean(sys.argv[1], sys.stdin.buffer.read()))
