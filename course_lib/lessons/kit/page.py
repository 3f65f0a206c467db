"""What a lesson's page looks like around its pictures: figures on a dark page, lines of a length that an eye follows."""

from __future__ import annotations

from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import HTML, display

from course_lib.base import runtime

# A figure is a PNG of dark ink on near-white. Turned over, and its hues turned back, it stands on a dark page as it does on a light one.
STYLE = """<style>
body[data-jp-theme-light="false"] .jp-OutputArea .jp-RenderedImage img, body.vscode-dark .output img {
  filter: invert(0.93) hue-rotate(180deg); }
.jp-Notebook .jp-RenderedMarkdown.jp-MarkdownOutput > :is(p, ul, ol, blockquote, h1, h2, h3, details) { max-width: 52em; }
.jp-Notebook .jp-MarkdownOutput > details { border-left: 5px solid var(--jp-warn-color1); padding: 4px 12px; }
.jp-Notebook .jp-MarkdownOutput > details > summary { cursor: pointer; }
.course-asleep { display: none; }
.jupyter-widgets-disconnected .course-asleep { display: block; }
</style>"""


def dress_page() -> None:
    """Give the notebook that runs this the style of the course; outside of a notebook nothing happens.

    The style is an output of the cell that runs, and goes when that cell is run again: then it is shown again.
    """
    if not runtime.in_notebook():
        return
    display(HTML(STYLE))
    shell: Any = get_ipython()
    home = shell.get_parent().get("metadata", {}).get("cellId") if hasattr(shell, "get_parent") else None

    def show_again(info: Any) -> None:
        if info.cell_id == home:
            display(HTML(STYLE))

    if home is not None:  # a front end that does not name its cells shows the style once
        shell.events.register("pre_run_cell", show_again)
