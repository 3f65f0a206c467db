"""A lesson's figures: their alt text, and what a saved notebook and a web page show of them."""

from __future__ import annotations

import base64

import ipywidgets
import pytest

from course_lib.lessons.live import VIEW, alt_text_in_html, without_live_views

PNG = b"\x89PNG\r\n\x1a\n"


def _notebook():
    nbformat = pytest.importorskip("nbformat")
    alt = "A number. n is 1."
    data = {"image/png": base64.b64encode(PNG).decode(), "text/plain": alt}
    metadata = {"image/png": {"alt": alt}}
    view = ipywidgets.Button()._repr_mimebundle_()
    data |= view
    output = nbformat.v4.new_output(
        "execute_result", data=data, metadata=metadata, execution_count=1
    )
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("tiny()", outputs=[output])]
    )
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {
            "state": {data[VIEW]["model_id"]: {}},
            "version_major": 2,
            "version_minor": 0,
        }
    }
    return notebook, metadata["image/png"]["alt"]


def test_static_html_keeps_a_moving_picture_moving():
    notebook, _ = _notebook()
    data = notebook.cells[0].outputs[0].data
    data["text/html"] = "<script>moves()</script>"
    alt_text_in_html(notebook, {})
    assert data["text/html"] == "<script>moves()</script>"


def test_saved_notebook_keeps_the_png_and_drops_the_live_view():
    notebook, alt = _notebook()
    without_live_views(notebook)
    output = notebook.cells[0].outputs[0]
    assert "widgets" not in notebook.metadata and VIEW not in output.data
    assert output.data["image/png"] and output.metadata["image/png"]["alt"] == alt


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_static_html_shows_the_png_with_its_alt_text(template):
    nbconvert = pytest.importorskip("nbconvert")
    from bs4 import BeautifulSoup

    notebook, alt = _notebook()
    exporter = nbconvert.HTMLExporter(template_name=template, preprocessors=[alt_text_in_html])
    html, _ = exporter.from_notebook_node(notebook)
    (image,) = BeautifulSoup(html, "html.parser").find_all("img")
    assert image["alt"] == alt and image["src"].startswith("data:image/png;base64,iVBOR")
