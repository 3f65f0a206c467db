"""Lesson 06: which program asks for which address, and how often: the accesses of any kernel, stepped through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets

from course_lib.lessons.access_map.figure import draw, window
from course_lib.lessons.access_map.model import AccessMap, model
from course_lib.lessons.access_map.run import record
from course_lib.lessons.live import LiveStepper, Picture


class AccessMapStepper(LiveStepper):
    """A LiveStepper over the operations of one program, with a slider for the program. ``map`` is the model."""

    def __init__(self, state: AccessMap) -> None:
        self.map = state
        last = state.recording.programs - 1
        program = ipywidgets.IntSlider(
            0, 0, last, description="program", disabled=last == 0, layout=ipywidgets.Layout(width="280px")
        )
        super().__init__(self._operations, self._draw_operation, {"program": program}, interval=600)
        self.slider.description = "operation"

    def still(self) -> Picture:
        """The end of the first programs on show, where their map is complete; the last step of all if the launch was stopped."""
        if self.error:
            return self.picture
        if self.map.recording.fault and self.map.steps:
            return draw(self.map, len(self.map.steps) - 1)
        programs = [program for program in window(self.map, 0) if self.map.of_program.get(program)]
        return draw(self.map, self.map.of_program[programs[-1]][-1]) if programs else draw(self.map, 0, 0)

    def _operations(self, program: int) -> Sequence[tuple[int, int]]:
        """(program, step) of each frame; a program that asks for nothing has one, with all that ran before it."""
        own = self.map.of_program.get(program)
        if own:
            return [(program, step) for step in own]
        before = [step for other, steps in self.map.of_program.items() if other < program for step in steps]
        return [(program, before[-1] if before else 0)]

    def _draw_operation(self, frames: Sequence[tuple[int, int]], index: int) -> Picture:
        program, step = frames[index]
        return draw(self.map, step, program)


def access_map(kernel: Any, grid: Any, *arguments: Any, **named: Any) -> AccessMapStepper:
    """Run ``kernel[grid](*arguments, **named)`` once in the interpreter, on copies, and show its accesses.

    Args:
        kernel: a @triton.jit function, of the course or your own, or a KernelSource (``learners_kernel("06a")``).
        grid: 1 to 3 sizes, up to 1024 programs, or a function of the arguments by name.
        arguments, named: as in the launch: CPU or GPU tensors, numbers, tl.constexpr values. A tensor is called by its
            parameter's name without ``_ptr``. Where two tensors share memory, the first of them gives the name.

    A kernel that leaves its tensors, or raises, is stopped there: the map shows what came before, and says what it was.

    Raises: CourseError if the launch does not fit the kernel or is too large; TypeError for what is no kernel.
    """
    return AccessMapStepper(model(record(kernel, grid, arguments, named)))
