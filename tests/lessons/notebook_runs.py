"""Writes notebooks of a few cells and runs them under nbval: the tests of lessons share it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from course_lib.authoring.nbval import CELL_SECONDS, make_command, make_environment
from course_lib.base import paths


@dataclass(frozen=True)
class NbvalRun:
    exit_code: int
    output: str


def run_nbval(folder: Path, cell_seconds: float = CELL_SECONDS, **environment: str) -> NbvalRun:
    """``make nbval``'s pytest over ``folder``/notebooks, with the exercises of
    ``folder``/exercises."""
    done = subprocess.run(
        make_command(folder / "notebooks", cell_seconds), cwd=paths.ROOT,
        env=make_environment(folder, **environment),
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return NbvalRun(done.returncode, done.stdout + done.stderr)


def notebook(path: Path, *cells: str, tags: dict[int, list[str]] | None = None) -> None:
    """Write a notebook of code cells; ``tags`` by cell number."""
    data = {
        "cells": [
            {
                "cell_type": "code", "execution_count": None, "id": f"cell-{n}", "outputs": [],
                "source": cell,
                "metadata": {"tags": (tags or {}).get(n, [])},
            }
            for n, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python",
            "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
