"""Figures of a lesson as PNGs with alt text, and the saved form of a notebook with live views."""

from __future__ import annotations

import base64
import html
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib.base.errors import CourseError
from course_lib.lessons import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Picture:
    """A PNG with alt text, which a notebook shows as a picture.

    ``alt`` describes the picture for a learner who cannot see it.
    """

    png: bytes
    alt: str

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return data and metadata by MIME type, as Jupyter expects them, with the alt text at the place that nbconvert reads."""
        return ({"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt}, {"image/png": {"alt": self.alt}})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.bundle()


def picture(figure: Figure, alt: str) -> Picture:
    """Return ``figure`` as a PNG with alt text, and close the figure in pyplot, so that it is not shown twice. Call it in a cell's last line.

    Raises: CourseError if ``alt`` is empty.
    """
    if not alt.strip():
        raise CourseError("this figure has no alt text. Say in a sentence what it shows: picture(figure, 'One-pass loses ...').")
    result = Picture(style.png(figure, alt), alt)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return result


def without_live_views(notebook: dict[str, Any]) -> None:
    """Remove the live views and their state from an executed notebook, in place; pictures and text stay.

    In JupyterLab, a live view without its kernel hides the output's other formats; on GitHub, widget state does the same.
    """
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output.get("data", {}).keys() & {"image/png", "text/html"}:
                output["data"].pop(VIEW, None)


def alt_text_in_html(notebook: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Preprocess a notebook for nbconvert's HTML export: every PNG with alt text becomes an ``img`` with that text.

    Moving pictures stay; live views are removed, as in ``without_live_views``.
    nbconvert's classic template uses the alt text of an output; its default template, lab, drops it. Use:
    ``jupyter nbconvert --to html --HTMLExporter.preprocessors=course_lib.lessons.live.alt_text_in_html FILE``.
    """
    without_live_views(notebook)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt and "image/png" in data and "text/html" not in data:  # a moving picture has HTML already
                source = "".join(data["image/png"]).replace("\n", "")
                data["text/html"] = f'<img alt="{html.escape(alt)}" style="max-width: 100%" src="data:image/png;base64,{source}">'
    return notebook, resources
