"""The schedule explorer: scrub through real interleavings of a kernel's programs, or drive them by hand, the learner's kernel included."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.compiler import KernelSource
from course_lib.grading.public import Unreadable, read_text
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.schedule.model import SEEDS, ScheduleLaunch, make_data

__all__ = ["ScheduleLaunch", "learners_file", "schedule_explorer"]

MOST_SEED = 9999
_ALT = (
    "A row for each program with its operations on shared memory in the order in which they happened, the shared memory below, and the "
    "kernel's lines with a marker for each program at its next operation."
)


def schedule_explorer(
    launches: Mapping[str, ScheduleLaunch],
    seed: int = 0,
    resident: int | Sequence[int] = 8,
    *,
    at_fault: bool = False,
    view: str = "programs",
) -> MovingPicture | AskingPicture:
    """Scrub through real interleavings, or choose who moves next: a row a program, locks, buffers, who waits for whom.

    Launches whose kernel is a function that reads a file are run when a button is pressed, as the file is then.

    Args:
        launches: by the name that the reader chooses from; at least one. Grids of up to 8 programs.
        seed: of the first order, 0 to 9999; nineteen more orders come with it.
        resident: how many unfinished programs there may be at once; of several numbers the reader chooses, and it opens with the first.
        at_fault: it opens at the first race of its order, or at its deadlock, if there is one, and not at the start.
        view: what it opens with: "programs", or "threads", those of one program.

    Raises: CourseError if there is no launch, or one cannot be run.
    """
    if not launches:
        raise CourseError("the schedule explorer has nothing to explore: pass at least one launch by name.")
    if not 0 <= seed <= MOST_SEED:
        raise CourseError(f"the schedule explorer takes seeds from 0 to {MOST_SEED}; you asked for {seed}.")
    seeds = list(range(seed, seed + len(SEEDS)))
    read = [name for name, launch in launches.items() if callable(launch.kernel) and not hasattr(launch.kernel, "fn")]
    rooms = [resident] if isinstance(resident, int) else list(resident)
    make = functools.partial(make_data, seeds=seeds, rooms=rooms)
    known = {name: make(launch) for name, launch in launches.items() if name not in read}

    def show(chosen: str) -> MovingPicture:
        data = {
            "launches": known,
            "chosen": chosen,
            "seeds": seeds,
            "rooms": rooms,
            "at_fault": at_fault,
            "view": view,
        }
        return MovingPicture("schedule", data, _ALT)

    if not read:
        return show(next(iter(known)))
    return _AskingExplorer(show, known, {name: launches[name] for name in read}, make)


class _AskingExplorer(AskingPicture):
    """The explorer with a button that runs the learner's file, as it is at that moment, and adds it to the kernels to choose from."""

    def __init__(
        self,
        show: Callable[[str], MovingPicture],
        known: dict[str, Any],
        files: Mapping[str, ScheduleLaunch],
        make: Callable[[ScheduleLaunch], dict[str, Any]],
    ) -> None:
        import ipywidgets

        self._asked = not known  # without another kernel there is nothing to show but the file

        def work(file: str) -> MovingPicture:
            if not self._asked:
                self._asked = True
                return show(next(iter(known)))
            known[file] = make(files[file])
            return show(file)

        choose = ipywidgets.Dropdown(options=list(files), description="file", disabled=len(files) < 2)
        super().__init__(work, {"file": choose}, "Run it as it is now")


def learners_file(exercise_id: str) -> Callable[[], KernelSource]:
    """A function that reads the learner's kernel of an exercise as the file is now, solved or not, for a :class:`ScheduleLaunch`.

    The function raises CourseError if the file is not there or cannot be read.
    """
    exercise = catalog.get(exercise_id)

    def read() -> KernelSource:
        path = texts.find_file(exercise)
        try:
            text = read_text(path, f"`course reset {exercise_id}` writes it anew.")
        except Unreadable as unreadable:
            raise CourseError(str(unreadable)) from None
        return KernelSource(text, exercise.entry_points[0], paths.shown(path))

    return read
