"""docs/architecture.md names what is there: every file, and every room."""

from __future__ import annotations

import re

import pytest
from test_imports import MAY_IMPORT

from course_lib.base import paths

PAGE = (paths.ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = paths.ROOT / "course_lib"
FILES = sorted(set(re.findall(r"[a-z_-]+(?:/[a-z_-]+)*\.(?:py|md)", PAGE)))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_is_there(name):
    assert (paths.ROOT / name).exists() or list(PACKAGE.rglob(name))


@pytest.mark.parametrize("room", sorted({name.split(".")[0] for name in MAY_IMPORT}))
def test_every_room_is_on_the_page(room):
    assert re.search(rf"`{room}`|\b{room}\b", PAGE)


def test_the_rooms_on_disk_are_the_rooms_of_the_table():
    rooms = {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
    }
    assert rooms == {name.split(".")[0] for name in MAY_IMPORT}
