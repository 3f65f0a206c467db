"""What nbval runs in a notebook's kernel beside the cells, if one kernel proves both states of a
lesson.

``watch`` runs before the first cell, from this file's text: ``import course_lib`` has to be the
first cell's. So nothing but the standard library and IPython is imported above.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

_FOLDER = "COURSE_EXERCISES"
# the events of processes that get this one's environment
_INHERITING = ("os.fork", "os.forkpty", "os.system", "pty.spawn")


def watch(folder: str) -> None:
    """Give the kernel exercises and progress of its own in ``folder``, and write the file
    ``depends`` there as soon as a cell reads an exercise.

    A process that a cell starts could do so unseen. So the file is written, too, as soon as one
    starts that knows where they are. The magic ``%put_solutions`` is defined, which begins the
    second state: the notebook's names are then those from before that cell.
    """
    shell = get_ipython()
    assert shell is not None, "this runs in a kernel"
    exercises = os.path.realpath(os.path.join(folder, "exercises"))
    shutil.copytree(os.environ[_FOLDER], exercises)
    os.environ |= {_FOLDER: exercises, "COURSE_STATE": os.path.join(folder, "state")}
    # the event that shows that the cells depend on the exercises from here on
    dependent: list[str] = []
    names: dict[str, Any] = {}

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if not dependent and _depends(event, arguments, exercises):
            dependent.append(event)  # before the next line, which opens a file, too
            Path(folder, "depends").write_text(f"{event} {arguments[0]!r}\n", encoding="utf-8")

    def keep_names(_info: Any) -> None:
        if not dependent:
            names.clear()
            names.update(shell.user_ns)

    def put_solutions(_line: str) -> None:
        _put_solutions()
        shell.user_ns.clear()
        shell.user_ns.update(names)

    shell.events.register("pre_run_cell", keep_names)
    shell.magics_manager.register_function(put_solutions, "line", "put_solutions")
    sys.addaudithook(note)


def _depends(event: str, arguments: tuple[Any, ...], exercises: str) -> bool:
    if event in ("open", "os.listdir", "os.scandir"):
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            return os.path.realpath(os.fsdecode(path)).startswith(exercises)
        # None is the working folder, a number an open file
        return path is None and os.getcwd() == exercises
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
        environment = arguments[-1]
        return environment is None or _FOLDER in environment or os.fsencode(_FOLDER) in environment
    return event in _INHERITING


def _put_solutions() -> None:
    """Put the course's solutions into the exercises, and expect that each panel passes from now
    on."""
    from course_lib.authoring import exercises
    from course_lib.base import paths
    from course_lib.grading.verdict import PASS
    from course_lib.lessons.panel import EXPECT

    exercises.put_solutions(paths.exercises())
    os.environ[EXPECT] = PASS
