"""`make build`: which targets a change makes due, in which commands they are built, and what is
kept of it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from course_lib.authoring import build
from course_lib.base import paths
from course_lib.base.errors import CourseError

TARGETS = list(build.list_targets())
_HUNTS = {"hunts", "tables and commands in README and docs/", "translations"}


def name_due(changed: list[str], built: dict[str, str] | None = None) -> set[str]:
    return {target.name for target, _sources in build.find_due(TARGETS, changed, built or {})}


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ("notebooks/source/06_reductions_and_memory.py", {"lesson 06", "translations"}),
        ("course_lib/lessons/lesson12/predictions.toml", {"lesson 12", "translations"}),
        (
            "notebooks/source/00_start_here.py",
            {"lesson 00", "notebooks for hosted services", "translations"},
        ),
        (
            "course_lib/exercises/ex07a_layer_norm_forward/wrong.toml",
            {"verdicts on 07a", "cases that kill wrong solutions of 07a", *_HUNTS},
        ),
        (
            "solutions/ex07a_layer_norm_forward.py",
            {
                "the learners' exercise files",
                "lesson 07",
                "verdicts on 07a",
                "cases that kill wrong solutions of 07a",
                "hunts",
                "translations",
            },
        ),
        ("course_lib/grading/judging/causes.py", {"all verdicts", "translations"}),
        (
            "course_lib/lessons/pictures/chart/picture.js",
            {"pictures in all lessons", "translations"},
        ),
        ("tests/authoring/test_build.py", set()),
        ("course_lib/sandbox/gone.txt", set()),
    ],
)
def test_a_change_makes_due_what_is_built_from_it(changed, names):
    assert name_due([changed]) == names


def test_a_shared_module_makes_the_lessons_due_that_read_it():
    due = name_due(["course_lib/kernels/norm_backward.py"])
    assert "lesson 13" in due and "lesson 00" not in due


def test_what_was_built_from_the_same_sources_is_not_due(monkeypatch, tmp_path):
    source = "course_lib/lessons/lesson12/predictions.toml"
    built = {"lesson 12": build.hash_files([source])}
    assert name_due([source], built) == {"translations"}
    assert "lesson 12" in name_due([source, "course_lib/lessons/lesson12/steps.py"], built)
    assert build.hash_files(["no/such.py"]) != build.hash_files([])


def test_every_target_names_a_module_that_can_be_run():
    for module in {target.module for target in TARGETS}:
        assert callable(importlib.import_module(f"course_lib.authoring.{module}").main)
    assert len({target.name for target in TARGETS}) == len(TARGETS)


class Commands:
    """Stands in for ``subprocess.run``; the module ``failing`` fails."""

    def __init__(self, failing: str = "") -> None:
        self.failing, self.seen = failing, []

    def __call__(self, command, **how):
        assert command[:2] == [sys.executable, "-m"] and how["cwd"] == paths.ROOT
        module, *arguments = command[2:]
        self.seen.append((module.rpartition(".")[2], *arguments))
        return subprocess.CompletedProcess(command, int(self.seen[-1][0] == self.failing))


@pytest.fixture
def built(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "_BUILT", tmp_path / "built.json")


CHANGED = [
    "course_lib/exercises/ex07a_layer_norm_forward/wrong.toml",
    "course_lib/lessons/lesson03/steps.py",
    "course_lib/lessons/lesson06/reduction_tree/picture.js",
    "course_lib/lessons/lesson12/steps.py",
]


def test_parts_are_built_in_one_command_and_are_not_due_again(monkeypatch, built, capsys):
    commands = Commands()
    monkeypatch.setattr(build.subprocess, "run", commands)
    build.build(build.find_due(TARGETS, CHANGED, {}))
    assert commands.seen == [
        ("notebooks", "03", "12"),
        ("notebooks", "--pictures"),
        ("verdicts", "07a"),
        ("killing_cases", "07a"),
        ("hunts",),
        ("readme",),
        ("translations",),
    ]
    assert "built in 0 s: lesson 03, lesson 12" in capsys.readouterr().out
    assert build.find_due(TARGETS, CHANGED, build.read_built()) == []


def test_after_a_failure_what_is_left_is_named_and_what_was_built_counts(monkeypatch, built):
    monkeypatch.setattr(build.subprocess, "run", Commands(failing="killing_cases"))
    with pytest.raises(CourseError, match=r"Still due: cases that kill.*07a, hunts"):
        build.build(build.find_due(TARGETS, CHANGED, {}))
    left = name_due(CHANGED, build.read_built())
    assert "cases that kill wrong solutions of 07a" in left and "lesson 03" not in left
