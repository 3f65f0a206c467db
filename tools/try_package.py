"""Build the package, install it in an empty environment elsewhere, and take lessons 00 and 03
through with it: `make package`.

What a learner does: `course init`, the environment, the steps of a lesson solved in its notebook,
checks of exercises, `course watch`. All of it runs in a new folder outside the checkout; as root,
it runs as an ordinary user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LESSONS = {"00": ("00a",), "03": ("03a",)}
_NOBODY = 65534
# Runs in the folder's environment: solve the steps of a lesson in its notebook, run it, and print
# which steps passed.
_RUN_LESSON = """
import json, os, sys
os.environ["COURSE_DEFER_CHOICE"] = "1"
from pathlib import Path
import nbformat
from nbclient import NotebookClient
from course_lib.catalog import step_cells
from course_lib.learner import progress
(file,) = Path("notebooks").glob(sys.argv[1] + "_*.ipynb")
notebook = nbformat.read(file, 4)
steps = step_cells.list_ids(sys.argv[1])
for cell in notebook.cells:
    for step in steps:
        if cell.cell_type == "code" and f'step("{step}")' in cell.source:
            cell.source = step_cells.make_solved(step)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": "notebooks"}}).execute()
print(json.dumps([steps, sorted(progress.read_steps())]))
"""


def build(folder: Path) -> Path:
    """Build the source distribution and, from it, the wheel. Return the wheel."""
    subprocess.run(
        [sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(folder), str(ROOT)],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


class Learner:
    """A person with an empty home and an empty environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # the settings of pip and uv say where packages come from; of the rest, a learner has
        # nothing
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "UV_INDEX", "UV_DEFAULT", "SSL_"))
        }
        self.environment = kept | {
            "HOME": str(home),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "TORCH": os.environ.get("TORCH", "cpu"),
        }
        self.as_user: dict[str, Any] = (
            {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
        )

    def take_over(self, folder: Path) -> None:
        """Make this person the owner of a folder and of all that is in it."""
        for path in (folder, *folder.rglob("*")) if self.as_user else ():
            shutil.chown(path, _NOBODY, _NOBODY)

    def start(
        self, *command: object, cwd: Path | None = None, **more: Any
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(part) for part in command], cwd=cwd or self.home, env=self.environment, text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **self.as_user,
            **more,
        )  # fmt: skip

    def run(self, *command: object, cwd: Path | None = None, code: int = 0) -> str:
        """Run a command and return what it printed. Ends the program if its exit code is not
        ``code``."""
        started = time.monotonic()
        with self.start(*command, cwd=cwd) as process:
            printed = process.communicate(timeout=900)[0]
        words = " ".join(str(part) for part in command)
        if process.returncode != code:
            sys.exit(
                f"package: `{words}` ended with {process.returncode} and not {code}:\n{printed}"
            )
        print(
            f"package: {time.monotonic() - started:5.1f} s "
            f" {words if len(words) < 100 else words[:60] + ' ...'}",
            flush=True,
        )
        return printed


def make_learner(home: Path) -> Learner:
    """Return a person whose home has nothing but pip's settings, which may name the index or the
    folder that packages come from."""
    (home / ".config" / "pip").mkdir(parents=True)
    pip_settings = Path.home() / ".config" / "pip" / "pip.conf"
    if pip_settings.is_file():
        shutil.copyfile(pip_settings, home / ".config" / "pip" / "pip.conf")
    learner = Learner(home)
    learner.take_over(home)
    return learner


def expect(words: str, printed: str) -> None:
    if words not in printed:
        sys.exit(f"package: expected {words!r} in:\n{printed}")


def try_out(learner: Learner, wheel: Path) -> None:
    """Take the lessons through, from an empty home on."""
    # root's own Python may lie where an ordinary user cannot go
    learner.run(
        "/usr/bin/python3" if learner.as_user else sys.executable, "-m", "venv", "environment"
    )
    command = learner.home / "environment" / "bin" / "course"
    learner.run(
        command.with_name("pip"), "install", "--quiet", "--disable-pip-version-check", wheel
    )
    expect("course init my-course", learner.run(command, "check", "00a", code=3))
    expect("Next: cd my-course", learner.run(command.with_name("norm-kernels-course"), "my-course"))
    course = learner.home / "my-course"
    expect("environment is ready", learner.run(command, "env", cwd=course))
    python = course / ".venv" / "bin" / "python"
    expect("The course can run here.", learner.run(command, "doctor", cwd=course))
    for lesson, exercises in LESSONS.items():
        steps, passed = json.loads(
            learner.run(python, "-c", _RUN_LESSON, lesson, cwd=course).splitlines()[-1]
        )
        if not steps or not set(steps) <= set(passed):
            sys.exit(f"package: of the steps {steps} of lesson {lesson} only {passed} passed.")
        for name in exercises:
            learner.run(command, "check", name, cwd=course, code=2)
            solution = learner.run(command, "solution", name, "--yes", cwd=course)
            (file,) = (course / "exercises").glob(f"ex{name}_*.py")
            file.write_text(solution, encoding="utf-8")
            expect("pass", learner.run(command, "check", name, cwd=course))
    watch(learner, command, course)
    handed_in = learner.home / "class" / "ann"
    shutil.copytree(course / "exercises", handed_in / "exercises")
    # an instructor has no course folder
    graded = learner.run(
        python.with_name("course"),
        "grade",
        "class",
        "--out",
        "results",
        "--only",
        ",".join(sum(LESSONS.values(), ())),
    )
    expect("2 files checked, 0 verdicts kept", graded)
    expect("What you wrote is as it was.", learner.run(command, "init", course))
    expect("pass", learner.run(command, "check", "03a", cwd=course))


def watch(learner: Learner, command: Path, course: Path) -> None:
    """Save a file while `course watch` runs, and wait for its verdict."""
    with learner.start(command, "watch", "01a", cwd=course) as watching:
        (file,) = (course / "exercises").glob("ex01a_*.py")
        text, end = file.read_text(encoding="utf-8"), time.monotonic() + 120
        try:
            assert watching.stdout is not None
            output = watching.stdout.fileno()
            os.set_blocking(output, False)
            printed = ""
            while "01a" not in printed.partition("saved")[2] and "not attempted" not in printed:
                if time.monotonic() > end or watching.poll() is not None:
                    sys.exit(
                        "package: `course watch` printed no verdict after a file was"
                        f" saved:\n{printed}"
                    )
                file.write_text(text, encoding="utf-8")
                time.sleep(1)
                # a text stream cannot be read while nothing has come
                with contextlib.suppress(BlockingIOError):
                    printed += os.read(output, 1 << 16).decode("utf-8", "replace")
        finally:
            watching.terminate()
    print("package: `course watch` checked the file that was saved")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="package-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        wheel = build(folder)
        print(f"package: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        learner = make_learner(folder / "home")
        try_out(learner, wheel)


if __name__ == "__main__":
    main()
