"""docs/architecture.md names what is there: every file, and every room. Names in the code say what
they hold."""

from __future__ import annotations

import ast
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


_RIDDLES = frozenset(
    "found first what wanted own known said told given kept of some there who how one full"
    " met".split()
)


def test_names_say_what_they_hold():
    """At most one assigned name in 200 is a word that says nothing of what it holds."""
    names: list[tuple[str, str]] = []
    for folder in ("course_lib", "tools"):
        for file in sorted((paths.ROOT / folder).rglob("*.py")):
            if not {"right", "unusual"}.isdisjoint(file.parts):
                continue  # as a learner may write them
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.arg):
                    names.append((node.arg, f"{file.name}:{node.lineno}"))
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.append((node.id, f"{file.name}:{node.lineno}"))
    riddles = [f"{name} in {place}" for name, place in names if name.strip("_") in _RIDDLES]
    assert len(riddles) * 200 <= len(names), "\n".join(riddles)
