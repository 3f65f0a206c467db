"""What nbval lets through and this course does not.

nbval runs a notebook's cells and fails one that raises. It passes a cell that prints a failure, and a cell whose bad
magic ends it without an exception, so that everything after the magic is never run. Both fail here.
"""

import re

import pytest

# IPython's word for a magic that does not exist; a test report's words for a failure; a traceback that was printed
_PRINTED_FAILURE = re.compile(r"^(UsageError: .*|FAILED\b.*|Traceback \(most recent call last\).*)", re.MULTILINE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if call.when != "call" or not report.passed:
        return
    for output in getattr(item, "test_outputs", None) or ():
        found = _PRINTED_FAILURE.search(output.get("text", "") if output.get("output_type") == "stream" else "")
        if found:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} raised nothing, and printed a failure: {found.group()}"
