"""Runs notebooks under nbval in a folder of their own, as an instructor's CI does: the tests of lessons share it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from course_lib.base import paths


@dataclass(frozen=True)
class NbvalRun:
    exit_code: int
    output: str


def run_nbval(folder: Path, exercises: Path, cell_seconds: int = 120, **environment: str) -> NbvalRun:
    """``pytest --nbval-lax`` over the notebooks in ``folder``, in this interpreter's environment."""
    shutil.copy(paths.NOTEBOOKS / "conftest.py", folder / "conftest.py")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TRITON_INTERPRET", "PYTEST_ADDOPTS", "COURSE_EXPECT")
    }
    inherited |= {
        "COURSE_EXERCISES": str(exercises),
        "COURSE_STATE": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH")])),
        **environment,
    }
    # its own rootdir, so that the project's options (and xdist's workers around this test) do not reach in
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(folder), "-c", os.devnull,
         "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout", str(cell_seconds), str(folder)],
        cwd=folder, env=inherited, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return NbvalRun(done.returncode, done.stdout + done.stderr)


def notebook(path: Path, *cells: str, tags: dict[int, list[str]] | None = None) -> None:
    """Write a notebook of code cells; ``tags`` by cell number."""
    data = {
        "cells": [
            {
                "cell_type": "code", "execution_count": None, "id": f"cell-{n}", "outputs": [], "source": cell,
                "metadata": {"tags": (tags or {}).get(n, [])},
            }
            for n, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    path.write_text(json.dumps(data))
