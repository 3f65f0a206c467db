"""What nbval lets through and this course does not, and what nbval notices late.

nbval runs a notebook's cells and fails one that raises. It passes a notebook that has nothing to run or to compare, a cell that prints a
failure, a cell whose bad magic ends it without an exception, so that everything after the magic is never run, and a cell that writes to
stderr, which a learner sees as a red box. It waits the whole time-out of a cell for a kernel that is dead. With COURSE_NBVAL_DEVICE a
notebook has to have run in that mode. All of them fail here, with the reason; words on stderr only on a machine without a GPU.
"""

import os
import re
import signal
import time
from queue import Empty

import pytest
from course_lib.base import runtime
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbFile

# with a GPU it may be a warning of PyTorch's or the driver's about that machine
_STDERR_FAILS = runtime.gpu_name() is None
# IPython's word for a magic that does not exist; a test report's words for a failure; a traceback that was printed
_PRINTED_FAILURE = re.compile(r"^(UsageError: .*|FAILED\b.*|Traceback \(most recent call last\).*)", re.MULTILINE)
# what `import course_lib` prints: "course: GPU mode, NVIDIA H100 (found a GPU). Kernels are compiled."
_MODE = re.compile(r"^course: (CPU|GPU) mode\b", re.MULTILINE)
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
                report, f"{item.nodeid}: this run is for {_DEVICE.upper()} mode, and its first cell chose {mode} mode."
            )


def _fail(report, words):
    report.outcome, report.longrepr = "failed", words
