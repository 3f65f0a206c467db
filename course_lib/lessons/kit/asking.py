"""A moving picture with controls that ask Python: for what needs Triton, a learner's file, or more rows than a page should carry.

The controls stand above the picture and talk to the kernel; the picture is an output of its own, which is replaced and saved with the
notebook. While Python works a busy sign stands there; where it fails, words do, and the picture before stays.
"""

from __future__ import annotations

import html
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from IPython.display import DisplayHandle, display

from course_lib.base import background
from course_lib.base.errors import CourseError
from course_lib.lessons.kit.output import MovingPicture

_ASLEEP = '<div class="course-asleep">These controls are asleep: run this cell to wake them. The picture below can be moved all the same.</div>'


class _Bar(ipywidgets.VBox):
    """Controls; in a notebook without a kernel, words that say how to get them."""

    # IPython takes text beside the widget; the stub of ipywidgets knows nothing of it
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **kwargs: Any) -> dict[str, Any]:
        asked = "Run this cell for the controls that ask Python."
        live = super()._repr_mimebundle_(**kwargs) or {}
        return dict(live) | {"text/html": f"<p><em>{asked}</em></p>", "text/plain": asked}


class AskingPicture:
    """``make(**values of the controls)`` computes the picture, at once and whenever the button is pressed.

    Args:
        make: returns the MovingPicture; what it raises here is raised, what it raises after a press is shown in words.
        controls: ipywidgets controls with a ``value``, by the name of make's argument.
        label: what the button says: "Trace it again".
    """

    def __init__(self, make: Callable[..., MovingPicture], controls: Mapping[str, Any], label: str) -> None:
        self._make = make
        self.controls = dict(controls)
        self.error: Exception | None = None
        self.picture = make(**self.read_values())
        self.button = ipywidgets.Button(description=label, layout=ipywidgets.Layout(width="auto"))
        self.button.on_click(lambda _: background.call_soon(self.ask))
        self.said = ipywidgets.HTML()
        for control in self.controls.values():
            control.style.description_width = "auto"
        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        controls_row = ipywidgets.HBox([*self.controls.values(), self.button], layout=row)
        self.bar = _Bar([ipywidgets.HTML(_ASLEEP), controls_row, self.said])
        self._handle: DisplayHandle | None = None

    def read_values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def ask(self) -> None:
        """Compute the picture for what the controls say now, and show it in the place of the one before."""
        self.button.disabled = True
        self._say("Python is at work ...")
        try:
            self.picture = self._make(**self.read_values())
        except Exception as problem:  # in a callback nobody else would ever see it
            self.error = problem
            self._say(_explain(problem, self.read_values()))
        else:
            self.error = None
            self._say("")
            if self._handle is not None:
                self._handle.update(self.picture)
        finally:
            self.button.disabled = False

    def _say(self, words: str) -> None:
        self.said.value = f'<p role="status" aria-live="polite" style="margin: 0">{html.escape(words)}</p>'

    def _ipython_display_(self) -> None:
        display(self.bar)
        self._handle = display(self.picture, display_id=True)


def _explain(problem: Exception, values: Mapping[str, Any]) -> str:
    """What went wrong in the learner's terms; a fault of the course is called one, with where it arose."""
    where = ", ".join(f"{name} = {value}" for name, value in values.items())
    if isinstance(problem, CourseError):
        return f"No new picture for {where}: {problem} The one below is the one from before."
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return (
        f"No new picture for {where}: {type(problem).__name__}: {problem} ({frame.name}, line {frame.lineno}). This is a fault of the "
        "course: please report these words. The picture below is the one from before."
    )
