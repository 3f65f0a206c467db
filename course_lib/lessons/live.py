"""The saved form of a notebook with live views, and its pictures' alt text in an export."""

from __future__ import annotations

import html
from typing import Any

VIEW = "application/vnd.jupyter.widget-view+json"


def without_live_views(notebook: dict[str, Any]) -> None:
    """Remove the live views and their state from an executed notebook, in place; pictures and text
    stay.

    In JupyterLab, a live view without its kernel hides the output's other formats; on GitHub,
    widget state does the same.
    """
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output.get("data", {}).keys() & {"image/png", "text/html"}:
                output["data"].pop(VIEW, None)


def alt_text_in_html(notebook: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Preprocess a notebook for nbconvert's HTML export: every PNG with alt text becomes an ``img``
    with that text.

    Moving pictures stay; live views are removed, as in ``without_live_views``. nbconvert's classic
    template uses the alt text of an output; its default template, lab, drops it. Use: ``jupyter
    nbconvert --to html --HTMLExporter.preprocessors=course_lib.lessons.live.alt_text_in_html
    FILE``.
    """
    without_live_views(notebook)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            # a moving picture has HTML already
            if alt and "image/png" in data and "text/html" not in data:
                source = "".join(data["image/png"]).replace("\n", "")
                data["text/html"] = (
                    f'<img alt="{html.escape(alt)}" style="max-width: 100%"'
                    f' src="data:image/png;base64,{source}">'
                )
    return notebook, resources
