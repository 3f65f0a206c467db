"""``python -m course_lib.authoring.hosted``: write the notebooks for a hosted notebook service such
as Colab or Kaggle.

Such a service opens a single notebook on a machine that has PyTorch and Triton, but not the course.
The first cell of each notebook therefore sets the course up. One is lesson 00; the other is half an
hour on a GPU, whose script lies beside it. A test compares the committed notebooks with those that
are built here.
"""

from __future__ import annotations

import re
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_lib.authoring.notebooks import list_sources, read_source
from course_lib.authoring.repository import HOSTED, is_published, read_repository
from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.base.paths import DISTRIBUTION

FILE = paths.ROOT / HOSTED
GPU_SOURCE = FILE.with_name("half_hour_on_a_gpu.py")
GPU_FILE = GPU_SOURCE.with_suffix(".ipynb")
SET_UP = """\
# Run this cell first, and once, for about a minute. It sets the course up beside this notebook and leaves the host's PyTorch and Triton as they are.
import os
import subprocess
import sys

SOURCE = "@SOURCE@"


def run_module(*command, else_say):
    if subprocess.run((sys.executable, "-m", *command)).returncode:
        raise SystemExit(f"course: {else_say} The lines above say why. Nothing below this cell works without it.")


run_module("pip", "install", "--quiet", SOURCE, else_say=f"pip could not install {SOURCE} (about a minute where it can).")
run_module("course_command", "init", "my-course", "--newest", else_say="the course folder could not be made.")
os.chdir("my-course/notebooks")

asked = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
try:
    capability = subprocess.run(asked, capture_output=True, text=True).stdout.split()
except FileNotFoundError:  # a machine without an NVIDIA GPU
    capability = []
if capability and float(capability[0]) < 8.0:
    os.environ["COURSE_DEVICE"] = "cpu"  # see below"""  # noqa: E501
_ABOUT = """\
This is lesson 00 of *LayerNorm and RMSNorm in Triton*, on a hosted machine. The cell above made the course folder `my-course`. The machine is
taken away when you leave: download `my-course/exercises` and `my-course/.course` before, if you want to go on elsewhere. *Run all* would show
the answers before you predict, so run the cells one at a time. For another lesson, open its notebook here, and copy the cell above to its top.

**What the free T4 can do, and what it cannot.** Its compute capability is 7.5, and Triton and the course support 8.0 or newer. So the cell
above chooses CPU mode on it: kernels run in Triton's interpreter, and every exercise can be solved and graded, but nothing is timed. Where a lesson
needs a time, it shows a stored one. If you choose GPU mode in spite of that (`COURSE_DEVICE=gpu`), expect this:

- fp32 and fp16 are computed as on newer GPUs. The T4 has no arithmetic in bf16: it is emulated, which is slow, or the compiler refuses it.
- It has no TMA and no clusters of thread blocks, which came with compute capability 9.0. No exercise needs them.
- Its times differ from those of the lessons: its memory moves 320 GB/s, and that of the H100 on which they were measured about ten times as much.

An L4 or an A100 (8.9 and 8.0) runs the lessons in GPU mode. The course was not tried on a T4."""  # noqa: E501


def make_notebook() -> nbformat.NotebookNode:
    """Return the notebook without outputs: the cell that sets the course up, a text about the
    machine, and the lesson."""
    notebook = read_source(list_sources()[0])
    # The service opens this notebook alone, so a link to another lesson would lead nowhere.
    notebook.cells[-1].source = re.sub(
        r"\[(lesson \d\d)\]\([^)]*\)", r"\1", notebook.cells[-1].source
    )
    # The picture's file is not beside the notebook either.
    notebook.cells[0].source = re.sub(r"!\[[^\]]*\]\([^)]*\)\n\n", "", notebook.cells[0].source)
    notebook.cells = [
        _make_set_up(),
        new_markdown_cell(_ABOUT, id="about-the-machine"),
        *notebook.cells,
    ]
    return notebook


def make_gpu_notebook() -> nbformat.NotebookNode:
    """Return the notebook of half an hour on a GPU without outputs: the cell that sets the course
    up, and what its script says."""
    notebook = read_source(GPU_SOURCE)
    notebook.cells = [_make_set_up(), *notebook.cells]
    return notebook


def _make_set_up() -> nbformat.NotebookNode:
    repository = read_repository()
    source = DISTRIBUTION if is_published() or not repository else f"git+{repository}"
    return new_code_cell(SET_UP.replace("@SOURCE@", source), id="set-up")


def main() -> int:
    FILE.parent.mkdir(exist_ok=True)
    for file, notebook in ((FILE, make_notebook()), (GPU_FILE, make_gpu_notebook())):
        write_atomic(file, nbformat.writes(notebook) + "\n")
        print(f"{paths.shown(file)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
