"""The schedule explorer: scrub through real interleavings of a kernel's programs, or choose the
next program by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import texts
from course_lib.compiler import KernelSource
from course_lib.grading.public import Unreadable, read_text
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.schedule.model import SEEDS, ScheduleLaunch, make_data

__all__ = ["ScheduleLaunch", "learners_file", "schedule_explorer"]

MOST_SEED = 9999
_ALT = N_(
    "A row for each program with its operations on shared memory in the order in which they"
    " happened, the shared memory below, and the kernel's lines with a marker for each program at"
    " its next operation."
)


def schedule_explorer(
    launches: Mapping[str, ScheduleLaunch],
    seed: int = 0,
    resident: int | Sequence[int] = 8,
    *,
    at_fault: bool = False,
    view: str = "programs",
) -> MovingPicture | AskingPicture:
    """Scrub through real interleavings, or choose the next program by hand. See each program's
    operations, locks, buffers and waits.

    If a launch's kernel is a function that reads a file, a button reads the file and runs the
    launch.

    Args:
        launches: the launches that the learner can choose, by name; at least one. Grids of up to 8
            programs.
        seed: the seed of the first order, 0 to 9999; the next 19 seeds are offered as well.
        resident: limit on the number of unfinished programs at a time. From several numbers the
            learner chooses; the first is the start.
        at_fault: open at the first race of the order, or at its deadlock, instead of at the start.
        view: the view at the start: "programs", or "threads" for the threads of one program.

    Raises: CourseError if there is no launch, or a launch cannot be run.
    """
    if not launches:
        raise CourseError(
            _("the schedule explorer has nothing to explore: pass at least one launch by name.")
        )
    if not 0 <= seed <= MOST_SEED:
        raise CourseError(
            _("the schedule explorer takes seeds from 0 to {most}; you asked for {seed}.").format(
                most=MOST_SEED, seed=seed
            )
        )
    seeds = list(range(seed, seed + len(SEEDS)))
    read = [
        name
        for name, launch in launches.items()
        if callable(launch.kernel) and not hasattr(launch.kernel, "fn")
    ]
    rooms = [resident] if isinstance(resident, int) else list(resident)
    make = functools.partial(make_data, seeds=seeds, rooms=rooms)
    data_by_launch = {name: make(launch) for name, launch in launches.items() if name not in read}

    def show(chosen: str) -> MovingPicture:
        data = {
            "launches": data_by_launch,
            "chosen": chosen,
            "seeds": seeds,
            "rooms": rooms,
            "at_fault": at_fault,
            "view": view,
        }
        return MovingPicture("schedule", data, _(_ALT))

    if not read:
        return show(next(iter(data_by_launch)))
    return _AskingExplorer(show, data_by_launch, {name: launches[name] for name in read}, make)


class _AskingExplorer(AskingPicture):
    """The explorer with a button that runs the learner's current file and adds it to the kernels to
    choose from."""

    def __init__(
        self,
        show: Callable[[str], MovingPicture],
        data_by_launch: dict[str, Any],
        files: Mapping[str, ScheduleLaunch],
        make: Callable[[ScheduleLaunch], dict[str, Any]],
    ) -> None:
        import ipywidgets

        self._asked = (
            not data_by_launch
        )  # if there is no other kernel to show first, run the file at once

        def work(file: str) -> MovingPicture:
            if not self._asked:
                self._asked = True
                return show(next(iter(data_by_launch)))
            data_by_launch[file] = make(files[file])
            return show(file)

        choose = ipywidgets.Dropdown(
            options=list(files), description=_("file"), disabled=len(files) < 2
        )
        super().__init__(work, {"file": choose}, _("Run it as it is now"))


def learners_file(exercise_id: str) -> Callable[[], KernelSource]:
    """Return a function for a :class:`ScheduleLaunch` that reads the learner's kernel of an
    exercise, solved or not, at each call.

    The function raises CourseError if the file is missing or cannot be read.
    """
    exercise = catalog.get(exercise_id)

    def read() -> KernelSource:
        path = texts.find_file(exercise)
        try:
            text = read_text(path, _("`course reset {id}` writes it anew.").format(id=exercise_id))
        except Unreadable as unreadable:
            raise CourseError(str(unreadable)) from None
        return KernelSource(text, exercise.entry_points[0], paths.shown(path))

    return read
