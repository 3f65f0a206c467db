"""What the set-up says of machines and Pythons that cannot hold the course."""

from __future__ import annotations

import ast
import importlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
FILES = ("bootstrap.py", "installer.py", "machine.py", "translation.py")


@pytest.fixture
def machine(monkeypatch):
    """The module, loaded afresh."""
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.delitem(sys.modules, "machine", raising=False)
    return importlib.import_module("machine")


def pretend(monkeypatch, version: tuple, text: str) -> None:
    """Let this Python call itself another one."""
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr("platform.python_version", lambda: text)


@pytest.mark.parametrize("name", FILES)
def test_old_python_can_read_the_set_up(name: str) -> None:
    tree = ast.parse((TOOLS / name).read_text(), feature_version=(3, 6))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} <= {
        "course_lib.base",  # which an older Python need not read
        "installer",
        "machine",
        "translation",
    }
    known = (
        "argparse ast ensurepip errno fcntl glob hashlib json os platform pty re shutil signal ssl"
        " struct subprocess sys termios textwrap time venv"
    )
    assert imported <= set(known.split(" "))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("python", ["false", "no-such-python", "two"])
def test_a_command_that_is_no_python_3_is_one_sentence(tmp_path: Path, python: str) -> None:
    two = tmp_path / "two"
    # how Python 2 answers the question
    two.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; sys.exit(1)"\n')
    two.chmod(0o755)
    named = str(two) if python == "two" else python
    done = subprocess.run(
        ["make", "env", f"PYTHON={named}"], cwd=TOOLS.parent, capture_output=True, text=True
    )
    assert done.returncode != 0 and done.stderr.startswith(
        f"course: {named} is not here, or is no Python 3. Install Python 3.11 or newer"
    )
    assert "Traceback" not in done.stderr and "SyntaxError" not in done.stderr


def test_old_python_hands_over_to_a_better_one(
    machine, monkeypatch, tmp_path: Path, capsys
) -> None:
    better = tmp_path / "python3.12"
    better.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bad").mkdir()
    # what a shim without its version does
    (tmp_path / "bad" / "python3.12").write_text("#!/bin/sh\nexit 127\n")
    for path in (better, tmp_path / "bad" / "python3.12"):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bad'}:{tmp_path}")
    pretend(monkeypatch, (3, 9, 18, "final", 0), "3.9.18")
    started: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        started.append(arguments)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        machine.check_python(False, ["bootstrap.py", "--flag"])
    assert started == [[str(better), "bootstrap.py", "--flag"]]
    assert "too old" in capsys.readouterr().out
    with pytest.raises(machine.Stop, match=r"Python 3\.9\.18.*(?s:.*)PYTHON=python3\.12"):
        machine.check_python(True, [])  # named by the person: no other in its place


@pytest.mark.parametrize(
    ("version", "text"),
    [((3, 10, 0, "final", 0), "3.10.0"), ((3, 11, 0, "candidate", 1), "3.11.0rc1")],
)
def test_old_python_alone_says_what_to_install(
    machine, monkeypatch, tmp_path: Path, version: tuple, text: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    pretend(monkeypatch, version, text)
    with pytest.raises(
        machine.Stop,
        match=(
            rf"Python {re.escape(text)} .* is too old: .*3\.11\.0 or newer(?s:.*)apt"
            r" install(?s:.*)PYTHON=python3\.12(?s:.*)uv python install"
        ),
    ):
        machine.check_python(False, [])


def test_newer_than_tested_is_a_word_and_no_refusal(machine, monkeypatch, capsys) -> None:
    pretend(monkeypatch, (3, 15, 0, "final", 0), "3.15.0")
    machine.check_python(False, [])
    assert "the course was tested with Python 3.11 to" in capsys.readouterr().out


def test_debian_without_the_venv_package(machine, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(machine.Stop, match=r"apt install python3\.\d+-venv"):
        machine.check_python(False, [])


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ({"system": "Darwin"}, "macOS.*Other systems"),
        ({"system": "Windows"}, "Windows.*WSL"),
        ({"machine": "riscv64"}, "riscv64.*x86_64 and aarch64"),
        ({"libc_ver": ("", "")}, "another C library than glibc"),
        ({"libc_ver": ("glibc", "2.17")}, r"2\.17.*2\.28"),
    ],
)
def test_systems_without_wheels(machine, monkeypatch, patch: dict, says: str) -> None:
    good = {"system": "Linux", "machine": "aarch64", "libc_ver": ("glibc", "2.41")}
    for name, value in {**good, **patch}.items():
        monkeypatch.setattr(machine.platform, name, lambda value=value: value)
    with pytest.raises(machine.Stop, match=says):
        machine.check_platform()


@pytest.mark.parametrize(
    ("free", "build", "stops"),
    [
        (1, "cpu", True),
        (1, "cuda", True),
        (5, "cpu", False),
        (5, "cuda", True),
        (20, "cuda", False),
    ],
)
def test_room_on_disk(
    machine, monkeypatch, tmp_path: Path, free: int, build: str, stops: bool
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        machine.shutil, "disk_usage", lambda path: usage._replace(free=free * 10**9)
    )
    if not stops:
        return machine.check_disk(str(tmp_path), build)
    with pytest.raises(machine.Stop, match=f"{free}\\.0 GB are free") as stop:
        machine.check_disk(str(tmp_path), build)
    assert ("TORCH=cpu" in str(stop.value)) == (build == "cuda")


def test_on_a_terminal_words_stay_whole(machine, monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "60")
    out, pipe = Terminal(), io.StringIO()
    sentence = "an address such as https://example.org/a/long/address/of/a/file.whl " * 3
    machine.say(sentence, out)
    machine.say(sentence, pipe)
    assert out.getvalue().split() == pipe.getvalue().split() == ["course:", *sentence.split()]
    assert max(map(len, re.split("\n", out.getvalue()))) <= 60 and pipe.getvalue().count("\n") == 1
