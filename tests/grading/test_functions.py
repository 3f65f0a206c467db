"""Grading plain functions: what comes back from the child, and in which words."""

from __future__ import annotations

import dataclasses

import pytest

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.kind import find_mode
from course_lib.sandbox import isolation

RETURNS = {
    "nothing": ("y = x", "wrong_return", "returned None; asked for: y"),
    "a tuple": ("return x, x", "wrong_return", "returned 2 values; asked for: y"),
    "a number": (
        "return 3.0",
        "wrong_return",
        "y came back as `float`; asked for: shape (3, 8), fp32",
    ),
    "another shape": (
        "return x.reshape(-1)",
        "wrong_return",
        "y came back as shape (24,), fp32; asked for: shape (3, 8), fp32",
    ),
    "another dtype": ("return x.double()", "wrong_return", "y came back as shape (3, 8), float64"),
    "x itself": ("return x", "wrong_values", "y[0, 0] is"),
    "an error": ("return x @ x", "function_raised", "line 5: RuntimeError"),
    "a loop without end": (
        "while True: pass",
        "time_limit",
        "stopped after the time limit: it used up its processor time",
    ),
    "a sleep": (
        "import time; time.sleep(60)",
        "time_limit",
        "stopped after the time limit: it waits or sleeps",
    ),
    "the end of the process": (
        "return x.expand(10**9, 3, 8).reshape(-1).double()",
        "too_much_memory",
        "RuntimeError",
    ),
}


@pytest.mark.parametrize(("body", "cause", "words"), RETURNS.values(), ids=RETURNS.keys())
def test_every_kind_of_return_has_its_words(body, cause, words, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"import torch\n\n\ndef layer_norm(x, w, b, eps):\n    {body}\n")
    verdict = check(
        catalog.get("01a"),
        file,
        limits=dataclasses.replace(find_mode("torch").limits, case=1.0, patience=1.5),
    )
    assert (verdict.cause, words in verdict.message) == (cause, True), verdict.message
    assert (verdict.mode, verdict.status, verdict.exit_code) == ("torch", "fail", 1)


def test_what_raises_while_it_is_imported_cannot_be_read(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n\nLIMIT = 1 // 0\n\n\ndef layer_norm(x, w, b, eps):\n    return x * LIMIT\n"
    )
    verdict = check(catalog.get("01a"), file)
    assert (verdict.status, verdict.exit_code) == (
        "error",
        3,
    ) and "line 3: ZeroDivisionError" in verdict.message
    assert {case.status for case in verdict.cases} == {"not run"}


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ("import os\n    os.fork()", "not_in_the_sandbox"),
        ("open('/etc/a_file_of_mine', 'w')", "not_in_the_sandbox"),
        ("torch.ones(1 << 45)", "too_much_memory"),
        ("bytearray(1 << 62)", "too_much_memory"),
        ('raise RuntimeError("can\'t start new thread")', "too_many_processes"),
        ("raise OSError(28, 'No space left on device')", "writes_files"),
    ],
    ids=["process", "file", "tensor", "bytes", "thread", "disk"],
)
def test_what_the_system_refuses_is_told_as_what_it_is(lines, cause, tmp_path):
    """The line is shown, and the question speaks of it, not of shapes and dtypes."""
    file = tmp_path / "ex01a.py"
    file.write_text(f"import torch\n\n\ndef layer_norm(x, w, b, eps):\n    {lines}\n    return x\n")
    verdict = check(catalog.get("01a"), file)
    if verdict.tier == isolation.LIMITS and cause == "not_in_the_sandbox":
        pytest.skip("limits alone let it through")
    assert (verdict.status, verdict.cause) == ("fail", cause), verdict.message
    assert verdict.place is not None and verdict.place.source.strip() in lines
    assert "dtype" not in verdict.question


RESOLVED = {
    "an attribute that a class of the file has, too": ("", "x.var(axis=1)"),
    "text that is compiled": (
        "code = __loader__.source_to_code(b'r = np.va' + b'r(x, axis=1)', 'x')\n"
        "    found = {'np': np, 'x': x}\n    type(two_pass)(code, found)()\n    ",
        "found['r']",
    ),
    "a name that is copied": (
        "found = lambda: 0\n    found.var = 0\n    import functools\n"
        "    functools.update_wrapper(found, np, ('va' + 'r',))\n    ",
        "found.var(x, axis=1)",
    ),
    "a module by another name": (
        "import enum\n    ",
        "enum.bltns.eval('x.va' + 'r(axis=1)', {'x': x})",
    ),
    "another function of the same": (
        "import statistics\n    ",
        "np.float32([getattr(statistics, 'pvarian' + 'ce')(r.tolist()) for r in x])",
    ),
}


@pytest.mark.parametrize(("before", "value"), RESOLVED.values(), ids=RESOLVED.keys())
def test_a_shortcut_of_numpys_is_seen_when_it_runs(before, value, tmp_path):
    exercise = catalog.get("03a")
    first, name, second = texts.read_solution(exercise).partition("def two_pass")
    second = second.replace("    return mean, var", f"    {before}Row\n    return mean, {value}")
    file = tmp_path / "mine.py"
    file.write_text(f"{first}class Row:\n    var = 0\n\n\n{name}{second}")
    verdict = check(exercise, file)
    assert (verdict.status, verdict.cause) == ("error", "not_allowed"), verdict.message
    assert "which of the two formulas" in verdict.message
