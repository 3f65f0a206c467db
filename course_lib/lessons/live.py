"""Figures of a lesson as PNGs with alt text, and what of a notebook's live views is saved with it."""

from __future__ import annotations

import base64
import html
import sys
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from course_lib.base.errors import CourseError
from course_lib.lessons import style

VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Picture:
    """A PNG with its words. Shown in a notebook as the picture with alt text.

    ``alt`` says what a person who cannot see the picture needs.
    """

    png: bytes
    alt: str

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data and metadata by MIME type, as Jupyter takes them; the alt text is where nbconvert looks for it."""
        return (
            {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt},
            {"image/png": {"alt": self.alt}},
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.bundle()


def picture(figure: Figure, alt: str) -> Picture:
    """``figure`` as a PNG with alt text, for the last line of a cell. Closes it in pyplot, so it is not shown twice.

    Raises: CourseError if ``alt`` is empty.
    """
    if not alt.strip():
        raise CourseError(
            "this figure has no alt text. Say in a sentence what it shows: picture(figure, 'One-pass loses ...')."
        )
    result = Picture(style.png(figure, alt), alt)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return result


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
    """A preprocessor for nbconvert's HTML export: every PNG that has alt text becomes an ``img`` with that text;
    a moving picture stays one.

    Live views go, as in ``without_live_views``.
    nbconvert's classic template reads the alt text of an output, its lab template (the default) leaves it out. Use:
    ``jupyter nbconvert --to html --HTMLExporter.preprocessors=course_lib.lessons.live.alt_text_in_html FILE``.
    """
    without_live_views(notebook)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt and "image/png" in data and "text/html" not in data:  # what moves goes on moving
                source = "".join(data["image/png"]).replace("\n", "")
                data["text/html"] = (
                    f'<img alt="{html.escape(alt)}" style="max-width: 100%" src="data:image/png;base64,{source}">'
                )
    return notebook, resources
