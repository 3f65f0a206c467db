"""What nbval lets through and this course does not, what nbval notices late, and what a run says while it runs.

nbval runs a notebook's cells and fails one that raises. It passes a notebook that has nothing to run or to compare, a cell that prints a
failure, a cell whose bad magic ends it without an exception, so that everything after the magic is never run, and a cell that writes to
stderr, which a learner sees as a red box. It waits the whole time-out of a cell for a kernel that is dead. With COURSE_NBVAL_DEVICE a
notebook has to have run in that mode. All of them fail here, with the reason; words on stderr only on a machine without a GPU.

A cell is called by its number in JupyterLab after a run of all cells. ``course_lib/authoring/nbval.py`` gives other names to cells that
are not on the page, and may write the cells of two states into one notebook.
"""  # noqa: E501

import difflib
import os
import re
import signal
import sys
import time
from queue import Empty

import pytest
from course_lib.authoring import nbval_kernel
from course_lib.base import runtime
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

# with a GPU it may be a warning of PyTorch's or the driver's about that machine
_STDERR_FAILS = runtime.gpu_name() is None
# IPython's word for a magic that does not exist; a test report's words for a failure; a traceback that was printed
_PRINTED_FAILURE = re.compile(r"^(UsageError: .*|FAILED\b.*|Traceback \(most recent call last\).*)", re.MULTILINE)
# what `import course_lib` prints: "course: GPU mode, NVIDIA H100 (found a GPU). Kernels are compiled."
_MODE = re.compile(r"^course: (CPU|GPU) mode\b", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # in a traceback of IPython's
_DEVICE = os.environ.get("COURSE_NBVAL_DEVICE", "")
_LOOKS_AFTER_SECONDS = 1.0


class KernelDied(RuntimeError):
    """The process that ran the notebook ended while a cell ran."""


def _await_reply(self, msg_id, timeout=None):
    """In place of nbval's: it looks every second whether the kernel is still there."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _LOOKS_AFTER_SECONDS if deadline is None else min(_LOOKS_AFTER_SECONDS, deadline - time.monotonic())
        try:
            return _wait(self, msg_id, timeout=max(left, 0))
        except Empty:
            if not self.is_alive():
                raise KernelDied(_say_how_it_ended(self.km)) from None
            if deadline is not None and time.monotonic() >= deadline:
                raise


_wait, RunningKernel.await_reply = RunningKernel.await_reply, _await_reply


def _say_how_it_ended(manager):
    code = getattr(getattr(manager.provisioner, "process", None), "returncode", None)
    if code is None:
        return "the kernel died"
    if code >= 0:
        return f"the kernel ended by itself, with exit code {code}"
    why = " (often because memory ran out)" if -code == signal.SIGKILL else ""
    return f"the kernel was killed by {signal.Signals(-code).name}{why}"


class Notebook(IPyNbFile):
    """A notebook whose cells are called as a person finds them.

    If it has the cells of two states, its kernel is watched: the second state leaves out the cells before the first one that depends on
    the exercises, which would run on the same files again.
    """  # noqa: E501

    marker = None  # the file that exists as soon as a cell depends on the exercises
    first_dependent = None  # the number of that cell

    def setup(self):
        super().setup()
        if self.second_pass is None:
            return
        folder = self.path.with_suffix("")
        self.marker = folder / "depends"
        watch = f"__import__('runpy').run_path({nbval_kernel.__file__!r})['watch']({str(folder)!r})"
        request = self.kernel.kc.execute(watch, silent=True, store_history=False)
        self.kernel.await_reply(request, timeout=self.config.option.nbval_cell_timeout)
        self.kernel.await_idle(request, self.config.option.nbval_kernel_startup_timeout)

    def collect(self):
        for item in super().collect():
            name = item.cell.metadata.get("nbval_name", f"Cell {item.cell_num + 1}")
            cell = Cell.from_parent(self, name=name, cell_num=item.cell_num, cell=item.cell, options=item.options)
            # nbval waits 5 seconds for an output after the reply; on a busy machine it may come later
            cell.output_timeout = max(cell.output_timeout, self.config.option.nbval_cell_timeout)
            yield cell

    @property
    def second_pass(self):
        """How many cells run before those of the second state; None if there is one state."""
        return self.nb.metadata.get("nbval_second_pass")


class Cell(IPyNbCell):
    def setup(self):
        """nbval would run the cells below one that ran out of time, and expect them to fail."""
        if self.parent.timed_out:
            pytest.skip("a cell above it ran out of time")

    def runtest(self):
        split = self.parent.second_pass
        if split is not None and self.cell_num >= split:
            first = self.parent.first_dependent
            if first is None or self.cell_num - split < first:
                pytest.skip("it has run: neither it nor a cell above it reads an exercise")
        try:
            super().runtest()
        finally:
            if split is not None and self.parent.first_dependent is None and self.parent.marker.exists():
                self.parent.first_dependent = self.cell_num

    def repr_failure(self, excinfo):
        if not isinstance(excinfo.value, NbCellError):
            return super().repr_failure(excinfo)
        error = excinfo.value
        details = _COLOURS.sub("", error.inner_traceback or "").strip("\n")
        headline = str(error)
        if headline == "Cell execution caused an exception":
            headline = details.splitlines()[-1]
        return f"{headline}\n\n{error.source}\n\n{details}"

    def reportinfo(self):
        return self.path, None, f"{self.path.name}, {self.name}"

    def format_output_compare(self, key, left, right):
        """Show what was stored as "-" and what came as "+"."""
        stored, came = (text if isinstance(text, str) else repr(text) for text in (left, right))
        lines = difflib.ndiff(stored.splitlines(), came.splitlines())
        self.comparison_traceback += [
            f"{key}: - was stored, + came",
            *(line.rstrip("\n") for line in lines),
        ]


@pytest.hookimpl(hookwrapper=True)
def pytest_collect_file(file_path, parent):
    outcome = yield
    outcome.force_result(
        [
            Notebook.from_parent(parent, path=file_path) if type(file) is IPyNbFile else file
            for file in outcome.get_result()
        ]
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """A notebook that could not fail has failed."""
    outcome = yield
    report = outcome.get_result()
    if not isinstance(collector, IPyNbFile) or not report.passed:
        return
    compared = [item for item in report.result if item.options["check"] and item.cell.get("outputs")]
    claims = [item for item in report.result if re.search(r"^\s*assert\b", item.cell.source, re.MULTILINE)]
    if not report.result:
        why = "it has no code cell"
    elif not compared and not claims:
        why = "no cell asserts anything, and no stored output is compared"
    else:
        return
    report.outcome, report.result = "failed", []
    report.longrepr = f"{collector.nodeid} proves nothing, so it cannot fail: {why}."


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if call.when != "call":
        return
    if call.excinfo is not None and isinstance(call.excinfo.value, KernelDied):
        report.longrepr = f"{item.nodeid}: {call.excinfo.value}, while it ran this cell:\n{item.cell.source}"
    if not report.passed:
        return
    outputs = getattr(item, "test_outputs", None) or ()
    printed = [output for output in outputs if output.get("output_type") == "stream"]
    for output in printed:
        text = output.get("text", "")
        if found := _PRINTED_FAILURE.search(text):
            return _fail(report, f"{item.nodeid} raised nothing, and printed a failure: {found.group()}")
        if _STDERR_FAILS and output.get("name") == "stderr":
            return _fail(report, f"{item.nodeid} raised nothing, and wrote to stderr: {text}")
    if _DEVICE and item.cell_num == 0:
        found = _MODE.search("\n".join(output.get("text", "") for output in printed))
        mode = found[1] if found else "no"
        if mode != _DEVICE.upper():
            _fail(
                report,
                f"{item.nodeid}: this run is for {_DEVICE.upper()} mode, and its first cell chose {mode} mode.",
            )


def _fail(report, words):
    report.outcome, report.longrepr = "failed", words


class Progress:
    """Says in the process that a person watches which lesson and which cell runs, and how each lesson ended."""

    def __init__(self, config):
        self.reporter = config.pluginmanager.getplugin("terminalreporter")
        self.on_terminal = sys.stdout.isatty()
        self.left = {}  # by notebook: the cells that have not run yet
        self.failed = {}  # by notebook: how many cells have failed
        self.cells = {}
        self.shown = ""

    def pytest_collection_finish(self, session):
        self._count(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if not self.cells:  # every worker collects all
            self._count(ids)

    def pytest_runtest_logstart(self, nodeid):
        if self.on_terminal:
            notebook, _, cell = nodeid.partition("::")
            done = self.cells[notebook] - self.left[notebook] + 1
            self._show(f"{notebook}: {cell} ({done} of {self.cells[notebook]})")

    def pytest_runtest_logreport(self, report):
        notebook, _, cell = report.nodeid.partition("::")
        if report.failed:
            self.failed[notebook] = self.failed.get(notebook, 0) + 1
            self._write(f"{notebook}: {cell} failed")
        if report.when == "teardown":
            self.left[notebook] -= 1
            if not self.left[notebook]:
                failed = self.failed.get(notebook, 0)
                end = f"{failed} failed" if failed else "all passed"
                self._write(f"{notebook}: {self.cells[notebook]} cells, {end}")

    def _count(self, ids):
        for nodeid in ids:
            notebook = nodeid.partition("::")[0]
            self.cells[notebook] = self.left[notebook] = self.cells.get(notebook, 0) + 1

    def _show(self, line):
        """Write a line that the next one replaces."""
        self.reporter.write("\r" + line.ljust(len(self.shown)), flush=True)
        self.shown = line

    def _write(self, line):
        if self.shown:
            self._show("")
            self.reporter.write("\r")
            self.shown = ""
        self.reporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "course-progress")


def pytest_report_teststatus(report):
    """No dot for a cell that passed: the progress names the lesson and the cell."""
    if report.skipped:
        return "skipped", "", "SKIPPED"
    if report.when == "call":
        return ("passed", "", "") if report.passed else ("failed", "", "FAILED")
    return ("error", "", "ERROR") if report.failed else ("", "", "")
