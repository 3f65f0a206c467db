"""Each command that README, the guides and the hosted notebooks tell a newcomer is typed by `make
commands`, or listed with a reason."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def try_commands(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    before = set(sys.modules)
    yield importlib.import_module("try_commands")
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(TOOLS)):
            monkeypatch.delitem(sys.modules, name)


def test_commands_are_found_in_shell_blocks_and_in_prose(try_commands) -> None:
    page = (
        "`make lab` and `x = 1`\n<!-- `make hidden` -->\n```sh\ncourse check 07a"
        " --json\n```\n```python\nmake_it()\n```\n`. .venv/bin/activate`"
    )
    assert try_commands.list_commands(page) == [
        "course check 07a --json",
        "make lab",
        ". .venv/bin/activate",
    ]
    assert try_commands.list_commands(
        "`TORCH=cpu course lab`, `course_lib/tab`, `.venv/bin/course lab`, `make_page`, `course-x`"
    ) == ["TORCH=cpu course lab", ".venv/bin/course lab"]


def test_each_command_of_the_pages_is_typed_or_has_a_reason(try_commands) -> None:
    unknown = {
        page: try_commands.find_unknown(commands)
        for page, commands in try_commands.read_pages().items()
    }
    assert not any(unknown.values()), (
        f"tools/try_commands.py neither types them nor lists them in UNTRIED: {unknown}"
    )
    assert try_commands.find_unknown(["make la", "course chec", "make coffee"]) == [
        "make la",
        "course chec",
        "make coffee",
    ]


def test_no_command_is_listed_that_no_page_tells(try_commands) -> None:
    of_pages = {command for commands in try_commands.read_pages().values() for command in commands}
    listed = [*(command.text for command in try_commands.COMMANDS), *try_commands.UNTRIED]
    assert len(listed) == len(set(listed))
    assert [command for command in listed if command not in of_pages] == []
