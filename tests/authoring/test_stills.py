"""The PNG beside a moving picture in a notebook that the course ships."""

from __future__ import annotations

import base64
import shutil

import nbformat
import pytest
from chromium import import_playwright

from course_lib.authoring import stills
from course_lib.base.errors import CourseError
from course_lib.lessons import cancellation


@pytest.fixture(scope="module")
def picture():
    return cancellation(N=64)


def make_notebook(picture):
    notebook = nbformat.v4.new_notebook()
    data = picture._repr_mimebundle_()
    notebook.cells = [nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("display_data", data=data)])]
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


def test_without_chromium_an_author_is_told_what_to_install(picture, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CourseError, match="apt install chromium"):
        stills.add_pngs(make_notebook(picture))
    stills.add_pngs({"cells": []})  # nothing to draw, nothing to install
