"""A moving picture with controls that let Python compute a new one: for data that needs Triton, a
learner's file, or is too large for a page.

The controls stand above the picture and call Python in the notebook's kernel. The picture is a
separate output, which is saved with the notebook; each result replaces it. While Python works, the
controls say so. If it fails, they say why, and the old picture stays.
"""

from __future__ import annotations

import html
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipywidgets
from IPython.display import DisplayHandle, display

from course_lib.base import background
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.output import MovingPicture


def _write_asleep() -> str:
    words = _(
        "These controls are asleep: run this cell to wake them. The picture below can be moved all"
        " the same."
    )
    return f'<div class="course-asleep">{words}</div>'


class _Bar(ipywidgets.VBox):
    """A row of controls; a notebook without a kernel shows a sentence that says how to get them."""

    # IPython accepts text beside the widget, although the type stub of ipywidgets does not declare
    # it
    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        invitation = _("Run this cell for the controls that ask Python.")
        live = super()._repr_mimebundle_(**kwargs) or {}
        return dict(live) | {"text/html": f"<p><em>{invitation}</em></p>", "text/plain": invitation}


class AskingPicture:
    """A picture that ``make(**values of the controls)`` computes, at once and whenever the button
    is pressed.

    Args:
        make: returns the MovingPicture. The constructor passes its exceptions on; after a press
            they are shown in words.
        controls: ipywidgets controls with a ``value``, by the name of make's argument.
        label: the button's label, such as "Trace it again".
    """

    def __init__(
        self, make: Callable[..., MovingPicture], controls: Mapping[str, Any], label: str
    ) -> None:
        self._make = make
        self.controls = dict(controls)
        self.error: Exception | None = None
        self.picture = make(**self.read_values())
        self.button = ipywidgets.Button(description=label, layout=ipywidgets.Layout(width="auto"))
        self.button.on_click(lambda button: background.call_soon(self.ask))
        self.said = ipywidgets.HTML()
        for control in self.controls.values():
            control.style.description_width = "auto"
        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        controls_row = ipywidgets.HBox([*self.controls.values(), self.button], layout=row)
        self.bar = _Bar([ipywidgets.HTML(_write_asleep()), controls_row, self.said])
        self._handle: DisplayHandle | None = None

    def read_values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def ask(self) -> None:
        """Compute the picture for the current values of the controls, and replace the old one."""
        self.button.disabled = True
        self._say(_("Python is at work ..."))
        try:
            self.picture = self._make(**self.read_values())
        except Exception as problem:  # Jupyter hides the exceptions of callbacks
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
        self.said.value = (
            f'<p role="status" aria-live="polite" style="margin: 0">{html.escape(words)}</p>'
        )

    def _ipython_display_(self) -> None:
        display(self.bar)
        self._handle = display(self.picture, display_id=True)


def choose_exercise(exercise_ids: Iterable[str], description: str) -> ipywidgets.Dropdown:
    """Return a control that chooses one of these exercises, whose kernel by the learner is asked
    for; "" for none."""
    choices = [
        (_("exercise {exercise}").format(exercise=exercise_id), exercise_id)
        for exercise_id in exercise_ids
    ]
    return ipywidgets.Dropdown(options=[(_("none"), ""), *choices], description=description)


def _explain(problem: Exception, values: Mapping[str, Any]) -> str:
    """Describe an exception for the learner. A fault of the course is called one, with the line
    that raised it."""
    where = list_words(f"{name} = {value}" for name, value in values.items())
    if isinstance(problem, CourseError):
        return _(
            "No new picture for {where}: {problem} The picture below is the one from before."
        ).format(where=where, problem=problem)
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    words = _(
        "No new picture for {where}: {fault}. This is a fault of the course: please report these"
        " words. The picture below is the one from before."
    )
    return words.format(
        where=where,
        fault=f"{type(problem).__name__}: {problem} ({frame.name}, line {frame.lineno})",
    )
