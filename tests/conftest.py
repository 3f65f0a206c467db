"""Every test runs in the mode this machine has, and never on a learner's files."""

from __future__ import annotations

import asyncio
import collections
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before anything imports the course: progress and kept copies of this test run go to a folder of
# their own.
os.environ["COURSE_STATE"] = tempfile.mkdtemp(prefix="course-test-state-")
os.environ.pop("COURSE_EXERCISES", None)
os.environ.pop("COURSE_EXPECT", None)
os.environ.pop("COURSE_LANG", None)  # a learner may have chosen a language before `make test`
# One thread for PyTorch in this process and in those that it starts: the workers of a test run
# share the cores, and a thread that waits for one without a core spins. With two threads the
# trainings of lesson 14 take four times the processor time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A job that a shell puts into the background ignores Ctrl-C, and so do its children: the tests of
# interrupts would wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import compiler_facts
import cost
import hypothesis
import pytest
from selection import choose_sweep, pick_evenly

import course_lib  # noqa: F401 - chooses the interpreter before any test imports triton

# A run finds here what it finds in CI, because each draws the same examples of a property. On a
# machine that is busy with other work an example takes any time.
hypothesis.settings.register_profile(
    "course", hypothesis.settings(), deadline=None, derandomize=True
)
hypothesis.settings.load_profile("course")


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--of-each", type=int, metavar="N", help="run at most N cases of each dear test function"
    )
    parser.addoption(
        "--sweep", metavar="PART", help="run the cases of `make sweep`: all, or a part such as 3/10"
    )
    parser.addoption(
        "--screenshots",
        action="store_true",
        help="keep screenshots of the pictures in build/screenshots",
    )
    parser.addoption(
        "--renew-cost",
        action="store_true",
        help="write tests/cost.json after a whole run without a failure",
    )
    parser.addoption(
        "--renew-facts",
        action="store_true",
        help="write tests/compiler_facts.json after a run without a failure",
    )


def pytest_configure(config) -> None:
    config.pluginmanager.register(cost.CostRecorder(config), "cost-recorder")
    compiler_facts.check_options(config)
    config.pluginmanager.register(compiler_facts.FactKeeper(config), "fact-keeper")


def pytest_report_header() -> str:
    return cost.describe_last_run()


def pytest_terminal_summary(terminalreporter, config) -> None:
    """Say how to run one case of a sweep again: without the option pytest leaves it out."""
    broken = [
        report.nodeid
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, ())
    ]
    if broken and config.getoption("--sweep"):
        terminalreporter.section("to run a case again")
        for nodeid in dict.fromkeys(broken):
            terminalreporter.write_line(f".venv/bin/python -m pytest --sweep=all '{nodeid}'")


def pytest_collection_modifyitems(config, items: list) -> None:
    """Leave the cases of a sweep to `make sweep`, and apply ``--of-each``, which `make quick`
    gives."""
    in_sweep = choose_sweep(config.getoption("--sweep"), items)
    config.hook.pytest_deselected(items=[item for item in items if item not in in_sweep])
    items[:] = [item for item in items if item in in_sweep]
    most = config.getoption("--of-each")
    if not most:
        return
    dear = cost.list_dear_functions()
    cases = collections.defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {
        case
        for function, all_cases in cases.items()
        for case in (pick_evenly(all_cases, most) if function in dear else all_cases)
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection() -> None:
    """Ten thousand tests are collected, and stay: a garbage collection would look through all of
    them, again and again."""
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
    """Give the test folders of its own for progress and for exercises, which do not exist yet.
    Return that of the exercises."""
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "exercises"))
    return tmp_path / "exercises"


@pytest.fixture(scope="session")
def session_browser() -> Iterator[Any]:
    """The browser of this worker's whole run; a test takes it from ``browser``."""
    from chromium import open_browser  # imported here: few tests need it

    with open_browser() as opened:
        # Playwright's own, which seems to run as long as the browser is open
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield opened, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def browser(session_browser: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """The browser. Playwright's event loop counts as running during the test only: tests that run
    notebooks have one of their own."""
    opened, loop = session_browser
    asyncio._set_running_loop(loop)
    yield opened
    asyncio._set_running_loop(None)
