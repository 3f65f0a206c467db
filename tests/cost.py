"""The processor time of each test: measured in every run, kept in a small file, told at the start
of the next run.

A test's cost is the processor time of its whole process tree (the worker, its children and theirs,
the ended ones included), from its set-up to its tear-down. A fixture of a module or session counts
for the test that asks for it first.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from selection import chooses_tests

HERE = Path(__file__).parent
# of the last whole run in this folder; git ignores it
RENEWED = HERE.parent / "build" / "test-cost.json"
STORED = HERE / "cost.json"  # of the run that an author committed
# a test function that costs less, all its cases together, is counted with its folder only
MIN_SECONDS = 1.0
DEAR_SECONDS = 0.1  # a case that costs less always runs
_SHOWN = 30  # test functions in the table at the end of a run
_TICKS = os.sysconf("SC_CLK_TCK")


def measure_process_tree(pid: int) -> float:
    """Return the processor seconds of a process, of its living descendants, and of the children
    that each of them has reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process ended meanwhile: its parent has its time
        return 0.0
    seconds = sum(map(int, fields[11:15])) / _TICKS
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread ended meanwhile, or the process
            seconds += sum(
                measure_process_tree(int(child)) for child in children.read_text().split()
            )
    return seconds


class CostRecorder:
    """A pytest plugin that measures each test where it runs and, where the run is controlled, adds
    the costs up."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # by node id without its case: cases, processor seconds
        self.functions: dict[str, tuple[int, float]] = {}
        self.started_at = time.time()
        self.collected = 0
        self._before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._before = measure_process_tree(os.getpid())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> None:
        # its report carries the property to the process that controls the run
        if call.when == "teardown":
            item.user_properties.append(
                ("cpu_seconds", measure_process_tree(os.getpid()) - self._before)
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and not is_worker(self.config):
            cpu_seconds = max(0.0, float(dict(report.user_properties).get("cpu_seconds", 0.0)))  # type: ignore[arg-type]
            function = report.nodeid.partition("[")[0]
            cases, seconds = self.functions.get(function, (0, 0.0))
            self.functions[function] = (cases + 1, seconds + cpu_seconds)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        cost = self.summarize()
        terminalreporter.section("processor seconds, the dearest tests and all by folder")
        for function, (cases, seconds) in list(cost["functions"].items())[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.0f} s  {cases:6} cases  {function}")
        terminalreporter.write_line("")
        for folder, (cases, seconds) in sorted(
            cost["folders"].items(), key=lambda entry: -entry[1][1]
        ):
            terminalreporter.write_line(f"{seconds:8.0f} s  {cases:6} tests  {folder}")
        terminalreporter.write_line(
            f"{cost['cpu_seconds']:8.0f} s  {cost['tests']:6} tests  in {cost['minutes']} minutes"
        )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if is_worker(self.config) or exitstatus or not is_whole_run(self.config):
            return
        RENEWED.parent.mkdir(exist_ok=True)
        text = json.dumps(self.summarize(), indent=1) + "\n"
        for file in (RENEWED, *([STORED] if self.config.getoption("--renew-cost") else [])):
            file.write_text(text, encoding="utf-8")

    def summarize(self) -> dict[str, Any]:
        folders: dict[str, tuple[int, float]] = {}
        for function, (cases, seconds) in self.functions.items():
            folder = "/".join(function.partition("::")[0].split("/")[:2])
            cases_before, seconds_before = folders.get(folder, (0, 0.0))
            folders[folder] = (cases_before + cases, round(seconds_before + seconds, 2))
        dear = {
            function: (cases, round(seconds, 1))
            for function, (cases, seconds) in self.functions.items()
            if seconds >= MIN_SECONDS
        }
        return {
            "date": datetime.date.today().isoformat(),
            "cores": os.cpu_count(),
            "minutes": round((time.time() - self.started_at) / 60, 1),
            "tests": sum(cases for cases, _ in self.functions.values()),
            "cpu_seconds": round(sum(seconds for _, seconds in self.functions.values())),
            "folders": folders,
            "functions": dict(sorted(dear.items(), key=lambda entry: -entry[1][1])),
        }


def describe_last_run() -> str:
    """Return a sentence that says how long the last whole run took, or an empty string if none is
    kept."""
    for file in (RENEWED, STORED):
        if file.exists():
            cost = json.loads(file.read_text(encoding="utf-8"))
            return (
                f"The last whole run ({cost['date']}, {cost['cores']} cores) took"
                f" {cost['minutes']:.0f} minutes for {cost['tests']} tests, {cost['cpu_seconds']} s"
                " of processor time."
            )
    return ""


def list_dear_functions() -> set[str]:
    """Return the test functions whose cases cost more than ``DEAR_SECONDS`` each in the stored
    run."""
    if not STORED.exists():
        return set()
    functions = json.loads(STORED.read_text(encoding="utf-8"))["functions"]
    return {
        function
        for function, (cases, seconds) in functions.items()
        if seconds > DEAR_SECONDS * cases
    }


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process runs tests for another one that controls the run."""
    return hasattr(config, "workerinput")


def is_whole_run(config: pytest.Config) -> bool:
    """Return whether the run is that of ``make test``, without a choice of tests."""
    return not chooses_tests(config) and [
        str(argument).rstrip("/") for argument in config.args
    ] == ["tests"]
