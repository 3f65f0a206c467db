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
# Run this cell first. It takes one to two minutes: it sets the course up beside this notebook, and leaves the host's PyTorch and Triton as they are.
import os
import subprocess
import sys
from pathlib import Path

SOURCE = "@SOURCE@"
HERE = globals().get("HERE") or Path.cwd()  # the folder of this notebook, also when the cell is run again
os.chdir(HERE)


def run_module(*command, else_say):
    done = subprocess.run((sys.executable, "-m", *command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="")
    if done.returncode:
        raise SystemExit(f"course: {else_say} The lines above say why.")


run_module("pip", "install", "--quiet", "--find-links", ".", SOURCE, else_say="@ELSE@")
run_module("course_command", "init", "my-course", "--newest", else_say="the course folder could not be made. Nothing below works without it.")
os.chdir("my-course/notebooks")

asked = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
try:
    capability = subprocess.run(asked, capture_output=True, text=True).stdout.split()
except FileNotFoundError:  # a machine without an NVIDIA GPU
    capability = []
if capability and float(capability[0]) < 8.0:
    os.environ["COURSE_DEVICE"] = "cpu"  # see below"""  # noqa: E501
# What a set-up that fails says; until the package is on an index, pip finds it as a file beside the
# notebook.
_ELSE = (
    "pip could not install the course from {SOURCE}, and nothing below works without it.@UPLOAD@"
)
_UPLOAD = (
    " The package is on no index yet: in a clone of the course `python3 -m pip wheel --no-deps .`"
    " makes a file norm_kernels_course-*.whl. Upload it beside this notebook, and run this cell"
    " again."
)
_WORK = """\
**Were you here before, or in a tab, or on a machine of your own?** Upload the `my-course.zip` that `course export` wrote there beside this
notebook, and run the next cell. What this folder has already is kept in `my-course/.course/kept` before a file of the zip takes its place.

**If a kernel that passed elsewhere does not compile here**, your kernel is probably right, and this GPU or the host's Triton is another one than it
was compiled for: take a smaller `BLOCK` or fewer rows a program where the message names shared memory or registers; else restart with
`os.environ["COURSE_DEVICE"] = "cpu"` at the end of the first cell, where the kernel passes as before, and report the message."""  # noqa: E501
IMPORT_WORK = """\
# A few seconds. It takes the exercises and the progress out of the newest my-course*.zip beside this notebook, and without one does nothing.
zips = sorted(HERE.glob("my-course*.zip"), key=os.path.getmtime)
if zips:
    run_module("course_command", "import", str(zips[-1]), else_say=f"{zips[-1].name} was not taken.")
else:
    print(f"There is no my-course.zip in {HERE}: nothing was changed.")"""  # noqa: E501
_LEAVE = """\
**Before you leave**: the machine is taken away when you close it. The next cell writes a zip of your exercises and your progress beside this
notebook. Download it; the second cell of this notebook takes it again, and so does `course import` on a machine of your own."""  # noqa: E501
EXPORT_WORK = """\
# A few seconds.
import time

run_module("course_command", "export", str(HERE / time.strftime("my-course-%H%M%S.zip")), else_say="no zip was written.")"""  # noqa: E501
_ABOUT = """\
This is lesson 00 of *LayerNorm and RMSNorm in Triton*, on a hosted machine. The first cell made the course folder `my-course`. Each cell of the
lesson takes a second or two; the one that imports PyTorch and the check of 00a take up to ten. *Run all* would show
the answers before you predict, so run the cells one at a time. For another lesson, open its notebook here, and copy the first cell to its top.

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
    about = new_markdown_cell(_ABOUT, id="about-the-machine")
    notebook.cells = [*_make_set_up(), about, *notebook.cells, *_make_leave()]
    return notebook


def make_gpu_notebook() -> nbformat.NotebookNode:
    """Return the notebook of half an hour on a GPU without outputs: the cell that sets the course
    up, and what its script says."""
    notebook = read_source(GPU_SOURCE)
    notebook.cells = [*_make_set_up(), *notebook.cells, *_make_leave()]
    return notebook


def _make_set_up() -> list[nbformat.NotebookNode]:
    return [
        new_code_cell(write_set_up(), id="set-up"),
        new_markdown_cell(_WORK, id="about-your-work"),
        new_code_cell(IMPORT_WORK, id="import-your-work"),
    ]


def write_set_up() -> str:
    """Return the first cell: where the package comes from, and what is to be done if it cannot be
    had, are those of today."""
    repository = read_repository()
    at_hand = is_published() or repository
    source = f"git+{repository}" if repository and not is_published() else DISTRIBUTION
    otherwise = _ELSE.replace("@UPLOAD@", "" if at_hand else _UPLOAD).replace("{SOURCE}", source)
    return SET_UP.replace("@SOURCE@", source).replace("@ELSE@", otherwise)


def _make_leave() -> list[nbformat.NotebookNode]:
    return [
        new_markdown_cell(_LEAVE, id="before-you-leave"),
        new_code_cell(EXPORT_WORK, id="export-your-work"),
    ]


def main() -> int:
    FILE.parent.mkdir(exist_ok=True)
    for file, notebook in ((FILE, make_notebook()), (GPU_FILE, make_gpu_notebook())):
        write_atomic(file, nbformat.writes(notebook) + "\n")
        print(f"{paths.shown(file)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
