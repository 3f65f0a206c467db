"""Every test runs in the mode this machine has, and never on a learner's files."""

from __future__ import annotations

import collections
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before anything imports the course: progress and kept copies of this test run go to a folder of their own.
os.environ["COURSE_STATE"] = tempfile.mkdtemp(prefix="course-test-state-")
os.environ.pop("COURSE_EXERCISES", None)
os.environ.pop("COURSE_EXPECT", None)
# One thread for PyTorch in this process and in those that it starts: the workers of a test run share the cores, and a thread that
# waits for one without a core spins. With two threads the trainings of lesson 14 take four times the processor time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A job that a shell puts into the background ignores Ctrl-C, and so do its children: the tests of interrupts would wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis
import pytest

import course_lib  # noqa: F401 - chooses the interpreter before any test imports triton

# On a machine that is busy with other work an example takes any time.
hypothesis.settings.register_profile("course", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("course")


def pytest_addoption(parser) -> None:
    parser.addoption("--of-each", type=int, metavar="N", help="run at most N cases of each test function, spread over its cases")


def pytest_collection_modifyitems(config, items: list) -> None:
    """Apply ``--of-each``, which `make quick` gives."""
    most = config.getoption("--of-each")
    if not most:
        return
    cases = collections.defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {case for of in cases.values() for case in {of[n * (len(of) - 1) // max(most - 1, 1)] for n in range(most)}}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection() -> None:
    """Ten thousand tests are collected, and stay: a garbage collection would look through all of them, again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a folder of its own for progress, which does not exist yet."""
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def own_exercises(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test folders of its own for progress and for exercises, which do not exist yet. Return that of the exercises."""
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "exercises"))
    return tmp_path / "exercises"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from chromium import open_browser  # imported here: few tests need it

    with open_browser() as opened:
        yield opened
