"""What all widgets share: a picture with words, controls that redraw it, and a copy for readers without a kernel.

A widget is a plain model, a function that draws it, and one of the two classes here. ``LiveFigure`` redraws when a
control changes; ``LiveStepper`` walks through frames. Both show a PNG and never pyplot, because Jupyter runs the
callbacks of widgets in a thread beside the running cell.
"""

from __future__ import annotations

import base64
import html
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from course_lib.base.errors import CourseError
from course_lib.lessons import style

VIEW = "application/vnd.jupyter.widget-view+json"
KEYS = "Keys: Tab moves between the controls, the arrow keys move a slider, Space presses a button."

_UNSEEN = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap"

_LATE = 0.4  # seconds; a message that was under way when Reset was pressed has arrived by then

# one drawing at a time in this process: two widgets may be moved while a cell runs
_DRAWING = threading.RLock()


@dataclass(frozen=True)
class Picture:
    """A PNG with its words. Shown in a notebook as the picture with alt text; also what a widget draws.

    ``alt`` says what a person who cannot see the picture needs; ``caption`` is the sentence under it.
    """

    png: bytes
    alt: str
    caption: str

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data and metadata by MIME type, as Jupyter takes them; the alt text is where nbconvert looks for it."""
        return (
            {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt},
            {"image/png": {"alt": self.alt}},
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.bundle()


def picture(figure: Figure, alt: str, caption: str = "") -> Picture:
    """``figure`` as a PNG with alt text, for the last line of a cell. Closes it in pyplot, so it is not shown twice.

    Raises: CourseError if ``alt`` is empty.
    """
    if not alt.strip():
        raise CourseError(
            "this figure has no alt text. Say in a sentence what it shows: picture(figure, 'One-pass loses ...')."
        )
    with _DRAWING:
        result = Picture(style.png(figure, alt), alt, caption or alt)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return result


class LiveFigure(ipywidgets.VBox):
    """Controls, the picture they choose, and a caption that says in words what is shown.

    Args:
        draw: takes the controls' values by name, returns the picture. Runs in the callback thread.
        controls: ipywidgets controls with a ``value``, by the name of draw's argument.
        arrange: called before each drawing with the controls, to switch off what has no meaning now or to move a
            limit; changes that it makes do not draw again.

    The first picture is drawn here, in the caller's thread: what goes wrong there is raised. Later, in a callback,
    what goes wrong is shown in place of the picture, in words, and kept in ``error``.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: Mapping[str, Any],
        *,
        arrange: Callable[[Mapping[str, Any]], None] | None = None,
        more: Sequence[ipywidgets.Widget] = (),
    ) -> None:
        self.controls = dict(controls)
        self.error: Exception | None = None
        self._draw = draw
        self._arrange = arrange
        self._arranging = False
        self._first = {name: control.value for name, control in self.controls.items()}
        for control in self.controls.values():
            control.style.description_width = "auto"
        self._reset = ipywidgets.Button(description="Reset", tooltip="Back to the first settings", layout=_narrow())
        self._reset.on_click(lambda _: self.reset())

        self._arrange_controls()
        self.picture = draw(**self.values())
        self._image = ipywidgets.Image(
            format="png", layout=ipywidgets.Layout(max_width="100%", align_self="flex-start")
        )
        self._caption = ipywidgets.HTML()
        self._show(self.picture)
        for control in self.controls.values():
            control.observe(self._changed, names="value")

        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        bar = ipywidgets.HBox([*self.controls.values(), *([] if more else [self._reset])], layout=row)
        rows = [bar, ipywidgets.HBox([*more, self._reset], layout=row)] if more else [bar]
        keys = ipywidgets.HTML(f'<div style="font-size: 0.85em; opacity: 0.8">{html.escape(KEYS)}</div>')
        super().__init__([*rows, self._image, self._caption, keys])

    @property
    def caption(self) -> str:
        """The words under the picture, without markup."""
        return self.picture.caption

    def values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def reset(self) -> None:
        """Every control back to its first value, and one new picture."""
        with _DRAWING:
            self._arranging = True
            try:
                for name, value in self._first.items():
                    self.controls[name].value = value
            finally:
                self._arranging = False
            self._redraw()

    def still(self) -> Picture:
        """The picture that is saved with the notebook. Here the one shown now."""
        return self.picture

    def _changed(self, change: Mapping[str, Any]) -> None:
        if not self._arranging:
            self._redraw()

    def _redraw(self) -> None:
        with _DRAWING:
            try:
                self._arrange_controls()
                new = self._draw(**self.values())
            except Exception as problem:  # in a callback nobody else would ever see it
                self.error = problem
                new = _failure(problem, self.values())
            else:
                self.error = None
            self._show(new)

    def _arrange_controls(self) -> None:
        if self._arrange is None:
            return
        self._arranging = True
        try:
            self._arrange(self.controls)
        finally:
            self._arranging = False

    def _show(self, new: Picture) -> None:
        self.picture = new
        self._image.value = new.png
        # ipywidgets' Image has no alt text, and with a tooltip JupyterLab fails to show it: so the words of the alt
        # text that the caption lacks stand in front of it, for screen readers only
        unseen = html.escape(new.alt.removesuffix(new.caption))
        self._caption.value = (
            '<p role="status" aria-live="polite" style="line-height: 1.4; margin: 0">'
            f'<span style="{_UNSEEN}">{unseen}</span>{html.escape(new.caption)}</p>'
        )

    # IPython takes a tuple, data and metadata, too; the stub of ipywidgets knows of data only
    def _repr_mimebundle_(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self.still().bundle()
        return (super()._repr_mimebundle_(**kwargs) or {}) | data, metadata


class LiveStepper(LiveFigure):
    """A LiveFigure over a list of frames: Back, Step, Play, Reset and a slider.

    Args:
        frames: takes the controls' values by name, returns at least one frame.
        draw: takes the frames and the index of the one to show.
        still: the index of the frame that is saved with the notebook; by default the first.
    """

    def __init__(
        self,
        frames: Callable[..., Sequence[Any]],
        draw: Callable[[Sequence[Any], int], Picture],
        controls: Mapping[str, Any],
        *,
        arrange: Callable[[Mapping[str, Any]], None] | None = None,
        still: Callable[[Sequence[Any]], int] = lambda frames: 0,
        interval: int = 900,
    ) -> None:
        self._make, self._draw_frame, self._choose_still = frames, draw, still
        self._settings: dict[str, Any] | None = None
        self._settled = 0.0
        self.frames: Sequence[Any] = ()
        self.slider = ipywidgets.IntSlider(0, 0, 0, description="frame", layout=ipywidgets.Layout(width="320px"))
        self.play = ipywidgets.Play(value=0, min=0, max=0, interval=interval, show_repeat=False)
        self.back = ipywidgets.Button(description="Back", tooltip="One frame back", layout=_narrow())
        self.step = ipywidgets.Button(description="Step", tooltip="One frame on", layout=_narrow())
        self.back.on_click(lambda _: self._move(-1))
        self.step.on_click(lambda _: self._move(+1))
        # tied in the browser: through the kernel the two would chase each other while it is busy
        self._tie = ipywidgets.jslink((self.play, "value"), (self.slider, "value"))
        super().__init__(
            self._draw_step, controls, arrange=arrange, more=[self.back, self.step, self.play, self.slider]
        )
        self.slider.style.description_width = "auto"
        self.slider.observe(self._frame_changed, names="value")

    def reset(self) -> None:
        # the browser may already have sent the next tick of Play, and it would undo the reset
        self._settled = time.monotonic() + _LATE if self.play.playing else 0.0
        self.play.playing = False
        self._settings = None
        super().reset()

    def _frame_changed(self, change: Mapping[str, Any]) -> None:
        if not self._arranging and change["new"] and time.monotonic() < self._settled:
            self.play.value = self.slider.value = 0
            return
        self._changed(change)

    def still(self) -> Picture:
        return self.picture if self.error else self._draw_frame(self.frames, self._choose_still(self.frames))

    def _move(self, by: int) -> None:
        self._settled = 0.0
        self.slider.value = min(max(self.slider.value + by, self.slider.min), self.slider.max)

    def _draw_step(self, **settings: Any) -> Picture:
        if settings != self._settings:
            self.frames = self._make(**settings)
            self._settings = settings
            arranging, self._arranging = self._arranging, True
            try:
                self.play.value = self.slider.value = 0
                self.play.max = self.slider.max = len(self.frames) - 1
            finally:
                self._arranging = arranging
        return self._draw_frame(self.frames, self.slider.value)


def wide(pixels: int) -> ipywidgets.Layout:
    """A control of that width."""
    return ipywidgets.Layout(width=f"{pixels}px")


def _narrow() -> ipywidgets.Layout:
    return ipywidgets.Layout(width="auto")


def _failure(problem: Exception, settings: Mapping[str, Any]) -> Picture:
    where = ", ".join(f"{name} = {value}" for name, value in settings.items())
    if isinstance(problem, CourseError):
        words = f"No picture for {where}: {problem}"
    else:
        frame = traceback.extract_tb(problem.__traceback__)[-1]
        words = (
            f"No picture for {where}: {type(problem).__name__}: {problem} ({frame.name}, line {frame.lineno}). "
            "This is a fault of the course. Press Reset, and report these words."
        )
    figure, axes = style.drawing(style.WIDTH, 0.8)
    style.write(axes, 0.2, 0.4, "No picture for this setting: the words below say why.", bold=True)
    return Picture(style.png(figure, words), words, words)


def without_live_views(notebook: dict[str, Any]) -> None:
    """Make the saved form of an executed notebook, in place: pictures and text stay, live views and their state go.

    A live view without its kernel hides what stands beside it in JupyterLab, and widget state does the same on GitHub.
    """
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output.get("data", {}).keys() & {"image/png", "text/html"}:
                output["data"].pop(VIEW, None)


def alt_text_in_html(notebook: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A preprocessor for nbconvert's HTML export: every PNG that has alt text becomes an ``img`` with that text.

    Live views go, as in ``without_live_views``.
    nbconvert's classic template reads the alt text of an output, its lab template (the default) leaves it out. Use:
    ``jupyter nbconvert --to html --HTMLExporter.preprocessors=course_lib.lessons.live.alt_text_in_html FILE``.
    """
    without_live_views(notebook)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt and "image/png" in data:
                source = "".join(data["image/png"]).replace("\n", "")
                data["text/html"] = (
                    f'<img alt="{html.escape(alt)}" style="max-width: 100%" src="data:image/png;base64,{source}">'
                )
    return notebook, resources
