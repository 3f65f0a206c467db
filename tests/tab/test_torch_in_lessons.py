"""What the lessons do with the stand-in for PyTorch, each in a process in which it is ``torch``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from course_lib.authoring.notebooks import find_notebook
from course_lib.base import paths

STANDINS = paths.ROOT / "course_lib" / "tab" / "standins"
NOT_IN_A_TAB = ("14", "15")
# What asks for gradients, by lesson: a cell each.
REFUSED = {
    "10": "torch.Tensor.requires_grad_",
    "17": "torch.Tensor.requires_grad_",
    "18": "torch.random",
}
# Those that refuse something, and others that use PyTorch for tensors, for statistics and for
# buffers. The rest is for a sweep.
IN_EACH_RUN = {*REFUSED, "01", "05", "13"}
LESSONS = [
    pytest.param(
        path, id=path.stem, marks=[] if path.stem[:2] in IN_EACH_RUN else [pytest.mark.sweep]
    )
    for path in sorted(paths.NOTEBOOK_SOURCES.glob("*.py"))
    if path.stem[:2] not in NOT_IN_A_TAB
]


def run(*command: str, folder: Path) -> str:
    """What Python prints, started where the stand-in is ``torch``."""
    environment = os.environ | {
        "COURSE_DEVICE": "cpu",
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(STANDINS), str(paths.ROOT)]),
    }
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "room", ["lessons", "norms", "kernels", "interpreter", "bench", "tuning", "catalog", "hunt"]
)
def test_every_module_that_a_lesson_may_load_can_be_imported(room, tmp_path):
    code = f"""
import importlib, pkgutil, torch
assert torch.__file__.startswith({str(STANDINS)!r})
room = importlib.import_module("course_lib.{room}")
names = [found.name for found in pkgutil.walk_packages(room.__path__, "course_lib.{room}.")]
assert names
for name in names:
    importlib.import_module(name)
"""
    run("-c", code, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(
    f"triton=={metadata.version('triton')}\n"
    not in (paths.ROOT / "constraints.txt").read_text(encoding="utf-8"),
    reason="the stored outputs are those of the pinned packages",
)
@pytest.mark.parametrize("source", LESSONS)
def test_the_cells_of_a_lesson_print_what_they_print_with_pytorch(source, tmp_path):
    notebook = find_notebook(source)
    ran = json.loads(
        run(
            str(Path(__file__).with_name("run_lesson.py")), str(notebook), folder=tmp_path
        ).splitlines()[-1]
    )
    cells = [
        cell
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    refused = [cell["error"] for cell in ran if cell["error"]]
    wanted = REFUSED.get(source.stem[:2])
    assert refused == (
        [
            f"NeedsPyTorch: {wanted} needs PyTorch, which a browser tab does not have: open this"
            " lesson on your machine."
        ]
        if wanted
        else []
    )
    compared = [
        (cell["printed"], stored_text(of_notebook))
        # the first cell says which mode was chosen, in a notebook alone
        for cell, of_notebook in zip(ran[1:], cells[1:], strict=True)
        if stored_text(of_notebook) and not cell["error"]
    ]
    assert [re.sub(r"\s+$", "", printed) for printed, _ in compared] == [
        stored.rstrip() for _, stored in compared
    ]


def stored_text(cell: dict[str, Any]) -> str:
    return "".join(
        "".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout"
    )
