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
from course_lib.base.errors import CourseError
from course_lib.base.translation import translate_filled
from course_lib.catalog import texts
from course_lib.classroom import own_word
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


@pytest.fixture
def classroom(tmp_path, monkeypatch):
    """A class of one learner, and files with which a teacher goes wrong, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "class/ann/exercises", "full"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in {
        "class/ann/exercises/ex01a_first.py": "x = 1\n",
        "full/notes.txt": "",
        "outside.csv": "learner,path\nann,../ann\n",
        "columns.csv": "name,path\nann,ann\n",
        "nobody.csv": "learner,path\n,ann\n",
        "twice.toml": '[1]\nexercises = ["01a"]\n[2]\nexercises = ["01a"]\n',
        "unknown.toml": '[1]\nexercises = ["01a"]\nroom = "5"\n',
        "bare.toml": "[1]\nlessons = []\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        "grade none -o out --all", "grade empty -o out --all", "grade outside.csv -o out --all",
        "grade class/ann/exercises -o out --all", "grade full -o out --all",
        "grade class -o class/out --all", "grade class -o full --all",
        "grade class -o out --all --map none.csv", "grade class -o out --all --map outside.csv",
        "grade class -o out --all --map columns.csv", "grade class -o out --all --map nobody.csv",
        "grade class -o out --week 99", "grade class -o out --week 1 --weeks none.toml",
        "grade class -o out --week 1 --weeks twice.toml", "grade class -o out --all --due monday",
        "grade class -o out --week 1 --weeks unknown.toml",
        "grade class -o out --week 1 --weeks bare.toml",
        "grade class -o out --all --due 2026-12-01 --late cheap",
        "grade class -o out --all --due 2026-12-01 --late 200%aday",
        "grade class -o out --only 01a --recheck 04a", "grade out --show ann 01a",
        "grade class -o out --all --secret-file none", "check 01a --secret-file full/notes.txt",
        "release full", "release docs.txt --workflow --week 1",
        "release out --workflow --week 1 --partial", "release out --classroom50 --secret-file x",
        "author new boat 11a_boat", "author new exercise boat", "author new lesson boat",
        "author new kernel 7", "author new picture p --kind torch",
    ],
)  # fmt: skip
def test_errors_of_teachers_and_authors(printed, classroom, arguments):
    text = printed(*(word.replace("aday", " a day") for word in arguments.split()))
    assert re.search("[\u4e00-\u9fff]", text) and find_english(text) == []
    assert "用法见" not in text, "the arguments do not reach the error"


@pytest.mark.parametrize(
    "lines",
    [
        "learner,points", "learner,exercise,points\neve,01a,1",
        "learner,exercise,points\nann,01a,q", "learner,exercise,points\nann,01a,1,2",
        "learner,exercise,points\nann,99z,1",
        "learner,exercise,points\nann,01a,1\nann,1a,1",
        "learner,exercise,points,late\nann,01a,1,soon",
    ],
)  # fmt: skip
def test_errors_of_the_own_word(chinese, tmp_path, lines):
    (tmp_path / "marks.csv").write_text(lines)
    with pytest.raises(CourseError) as caught:
        own_word.read_words(tmp_path / "marks.csv", [("ann", {"ann"})])
    text = str(caught.value)
    assert re.search("[\u4e00-\u9fff]", text) and find_english(text) == []


def test_what_a_confined_process_says_of_an_archive(chinese):
    """It has no catalog, so its sentences are translated when they are filled."""
    for english, translated in {
        "ex01a.py and 2 more: not read, it is a link": "ex01a.py 和另外 2 个：没有读取，是链接",
        "has more than 20000 members": "里面的条目超过 20000 个",
    }.items():
        assert translate_filled(english, "interface") == translated


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
