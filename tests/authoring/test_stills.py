"""The PNG beside a moving picture in a notebook that the course ships."""

from __future__ import annotations

import base64
import shutil

import nbformat
import pytest
from chromium import import_playwright

from course_lib.authoring import notebooks, stills
from course_lib.base.errors import CourseError
from course_lib.lessons import cancellation


@pytest.fixture(scope="module")
def picture():
    return cancellation(N=64)


def make_notebook(picture):
    notebook = nbformat.v4.new_notebook()
    data = picture._repr_mimebundle_()
    notebook.cells = [
        nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("display_data", data=data)])
    ]
    return notebook


def test_a_built_notebook_has_a_still_of_each_picture(picture):
    import_playwright()
    if stills.find_chromium() is None:
        pytest.skip("no Chromium on this machine; on Debian `apt install chromium`")
    notebook = make_notebook(picture)
    stills.add_pngs(notebook)
    shipped = notebook.cells[0].outputs[0]
    assert base64.b64decode(shipped["data"]["image/png"]).startswith(b"\x89PNG")
    assert shipped["metadata"]["image/png"]["alt"] == picture.alt
    nbformat.validate(notebook)


def test_a_saved_picture_gets_the_script_of_today_and_keeps_its_data(
    picture, tmp_path, monkeypatch
):
    import_playwright()
    if stills.find_chromium() is None:
        pytest.skip("no Chromium on this machine; on Debian `apt install chromium`")
    file = tmp_path / "03_large_means.ipynb"
    monkeypatch.setattr(notebooks, "find_notebook", lambda source: file)
    monkeypatch.setattr(notebooks, "find_answers", lambda name: tmp_path / "none.json")
    old = make_notebook(picture)
    old.cells[0].outputs[0]["data"]["text/html"] = picture.make_html().replace("const ", "let ", 1)
    file.write_text(nbformat.writes(old))
    assert notebooks.main(["03", "--pictures"]) == 0
    renewed = nbformat.read(file, as_version=4).cells[0].outputs[0]["data"]
    assert renewed["text/html"] == picture.make_html() and "image/png" in renewed


def test_without_chromium_an_author_is_told_what_to_install(picture, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CourseError, match="apt install chromium"):
        stills.add_pngs(make_notebook(picture))
    stills.add_pngs({"cells": []})  # nothing to draw, nothing to install
