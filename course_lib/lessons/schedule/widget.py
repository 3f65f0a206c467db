"""The schedule explorer: step through a real interleaving of a kernel's programs, the learner's own kernel included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.compiler import KernelSource
from course_lib.grading.public import Unreadable, read_text
from course_lib.lessons import style
from course_lib.lessons.live import LiveStepper, Picture
from course_lib.lessons.schedule.figure import figure
from course_lib.lessons.schedule.model import ScheduleFrame, caption, find_telling_frame, frames, title
from course_lib.lessons.schedule.run import Interleaving, interleaved

_AT_ONCE = 20  # seeds that a second process runs in one go: its start is what takes time
MOST_SEED = 9999


@dataclass(frozen=True)
class ScheduleLaunch:
    """A launch to explore: ``kernel`` is a @triton.jit function, a KernelSource, or a function that gives one anew each time."""

    kernel: Any
    grid: Sequence[int]
    arguments: Sequence[Any]
    named: Mapping[str, Any] = field(default_factory=dict)


class _Runs:
    """Seeds of one launch, each run once while the kernel's text stays as it is."""

    def __init__(self, launch: ScheduleLaunch, resident: int):
        self.launch, self.resident = launch, resident
        self._known: dict[int, Interleaving] = {}
        self._text: str | None = None

    def get(self, seed: int) -> Interleaving:
        kernel = self.launch.kernel
        if callable(kernel) and not hasattr(kernel, "fn"):
            kernel = kernel()
        text = kernel.text if isinstance(kernel, KernelSource) else None
        if text != self._text:
            self._known.clear()
            self._text = text
        if seed not in self._known:
            first = seed // _AT_ONCE * _AT_ONCE
            seeds = range(first, first + _AT_ONCE)
            runs = interleaved(
                kernel,
                self.launch.grid,
                *self.launch.arguments,
                seeds=seeds,
                resident=self.resident,
                **self.launch.named,
            )
            self._known |= {run.seed: run for run in runs}
        return self._known[seed]


def schedule_explorer(launches: Mapping[str, ScheduleLaunch], seed: int = 0, resident: int = 8) -> LiveStepper:
    """Step, play and reseed real interleavings: a lane a program, every operation in order, locks, buffers, who waits for whom.

    Args:
        launches: by the name that the reader chooses from; at least one. Grids of up to 8 programs.
        seed: of the first picture, 0 to 9999.
        resident: how many unfinished programs there may be at once.

    Raises: CourseError if there is no launch, or the first one cannot be run.
    """
    if not launches:
        raise CourseError("the schedule explorer has nothing to explore: pass at least one launch by name.")
    runs = {name: _Runs(launch, resident) for name, launch in launches.items()}
    controls = {
        "kernel": ipywidgets.Dropdown(
            options=list(launches), description="kernel", layout=ipywidgets.Layout(width="330px")
        ),
        "seed": ipywidgets.BoundedIntText(
            seed, 0, MOST_SEED, description="seed", layout=ipywidgets.Layout(width="130px")
        ),
        "everything": ipywidgets.Checkbox(
            False, description="private memory, too", indent=False, layout=ipywidgets.Layout(width="180px")
        ),
    }

    def make(kernel: str, seed: int, everything: bool) -> list[ScheduleFrame]:
        return frames(runs[kernel].get(seed), everything=everything)

    return LiveStepper(make, draw, controls, still=find_telling_frame)


def draw(all_frames: Sequence[ScheduleFrame], index: int) -> Picture:
    """The picture of one frame."""
    frame = all_frames[index]
    words = caption(frame)
    return Picture(style.png(figure(frame), words), f"{title(frame)}. {words}", words)


def learners_file(exercise_id: str) -> Callable[[], KernelSource]:
    """A function that reads the learner's kernel of an exercise as the file is now, solved or not, for a :class:`Launch`.

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
