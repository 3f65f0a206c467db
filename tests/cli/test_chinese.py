"""What the commands print in Chinese: no English sentence is left in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from english import find_english

from course_lib import catalog, doctor
from course_lib.base import installation, paths
from course_lib.catalog import texts
from course_lib.cli import app as cli
from course_lib.doctor import gpu, isolation, machine, packages

COMMANDS = [
    "init", "env", "lab", "check", "watch", "hint", "solution", "reset", "hunt", "status", "bench",
    "doctor", "update", "export", "import", "grade", "release", "author", "author new",
    "author check",
]  # fmt: skip


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "zh")
    catalog.exercises.cache_clear()
    yield
    catalog.exercises.cache_clear()


@pytest.fixture
def printed(chinese, capsys):
    """Return a function that runs a command and returns all that it printed."""

    def run(*arguments: str) -> str:
        cli.run(list(arguments))
        return "\n".join(capsys.readouterr())

    return run


def test_an_english_sentence_is_found_and_code_is_not():
    assert find_english("运行它。Run this cell now.") == ["Run this cell now"]
    assert find_english("运行 `make lab in a folder`，见 a/b c=d。PyTorch 和 Triton") == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(printed, command):
    text = printed(*command.split(), "--help")
    assert "用法：course" in text and find_english(text) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",), ("chek",), ("check", "--frob"), ("hint", "07a", "08a"), ("solution",),
        ("hint", "--fil"), ("bench", "--rows", "x"), ("check", "--require-tier", "q", "07a"),
        ("bench", "--stored=3"), ("check", "07a", "--file"), ("check", "99z"), ("init",), ("env",),
        ("check", "--file", "x.py"), ("check", "07a", "08a", "--json"), ("bench", "nokind"),
        ("bench", "--columns", "x"), ("bench", "training", "--dtype", "fp32"),
        ("bench", "--rows", "3"), ("bench", "--rows", "0", "--columns", "4"),
        ("bench", "--columns", "64", "--rows", "8", "--dtype", "q"),
        ("status", "--html", "x.txt"), ("status", "07a", "--html", "x.html"),
        ("import", "/none.zip"), ("bench", "--plot", "x.html", "--json"),
    ],
)  # fmt: skip
def test_wrong_use_and_errors(printed, own_exercises, arguments):
    text = printed(*arguments)
    assert re.search("[\u4e00-\u9fff]", text) and find_english(text) == []


def test_stored_measurements(printed):
    text = printed("bench", "--stored")
    assert "训练步" in text and find_english(re.sub("forward and backward", "", text)) == []


def test_carried_work(printed, own_exercises, tmp_path):
    file = tmp_path / "work.zip"
    assert find_english(printed("export", str(file))) == []
    exercise = texts.find_file(catalog.get("00a"))
    exercise.parent.mkdir(exist_ok=True)
    exercise.write_text("x = 1\n")
    assert find_english(printed("export", str(file))) == []
    assert find_english(printed("export", str(file))) == []
    exercise.write_text("x = 2\n")
    assert "取自 zip" in (text := printed("import", str(file))) and find_english(text) == []


@pytest.mark.parametrize("details", [False, True])
def test_doctor(chinese, details):
    text = doctor.as_text(doctor.examine(), details=details)
    assert "课程可以在这里运行。" in text and find_english(text) == []


def test_doctor_where_much_is_wrong(chinese, monkeypatch):
    for name, value in {
        "COURSE_DEVICE": "cpu", "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(packages, "OLDEST_PYTHON", (9, 0, 0, "final"))
    monkeypatch.setattr(packages, "find_version", lambda name: None)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: _Full)
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    card = gpu.Card("NVIDIA H100", "400.1")
    probe = {"torch": "2.13.0", "cuda": "13.0", "available": False}
    findings = [
        *packages.examine_python(), *packages.examine_packages(), *packages.examine_settings(),
        *machine.examine_system(), *machine.examine_disk(),
        *gpu.examine_gpu(probe, [card]), *gpu.examine_gpu(probe | {"cuda": None}, [card]),
        *gpu.examine_gpu({"crash": "x"}, "y"),
        *gpu.examine_gpu(probe, [gpu.Card("NVIDIA H100", "999.1")]),
        *isolation.examine_isolation({}), *isolation.examine_isolation({"tier": "Landlock"}),
    ]  # fmt: skip
    text = doctor.as_text(findings)
    assert len(findings) >= 12 and "箭头" in text and find_english(text) == []


class _Full:
    free = 0


def test_faults_of_the_machine(chinese):
    for number in installation._REMEDIES:
        fault = installation.environment_fault(OSError(number, "x", "file"))
        assert fault is not None and find_english(str(fault)) == []
    assert find_english(str(installation.environment_fault(MemoryError()))) == []
    assert find_english(str(installation.missing_package("torch"))) == []


def test_doctor_speaks_where_packages_are_missing():
    """A bare Python has no polib."""
    script = (
        "import sys; sys.modules['polib'] = None\n"
        "from course_lib.base.translation import gettext\n"
        "print(gettext('The course can run here.'))"
    )
    environment = os.environ | {"COURSE_LANG": "zh", "COURSE_DEFER_CHOICE": "1"}
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env=environment, cwd=paths.ROOT,
    )  # fmt: skip
    assert process.stdout.strip() == "课程可以在这里运行。"


def test_make_help():
    environment = os.environ | {"COURSE_LANG": "zh", "PYTHON": sys.executable}
    process = subprocess.run(
        ["make", "help"], capture_output=True, text=True, check=True, env=environment,
        cwd=paths.ROOT,
    )  # fmt: skip
    assert "打开第 00 课" in process.stdout and find_english(process.stdout) == []
