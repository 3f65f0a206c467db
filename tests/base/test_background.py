"""A call that goes on beside its caller: its answer, its exception, its context; and a program that
does not wait for it."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading

import pytest

from course_lib.base import background, paths

NAME = contextvars.ContextVar("NAME", default="nobody's")


def test_the_answer_comes_from_another_thread():
    assert background.start(threading.get_ident).result() != threading.get_ident()


def test_what_it_raises_is_raised_where_the_answer_is_asked_for():
    future = background.start(lambda: int("no number"))
    with pytest.raises(ValueError, match="no number"):
        future.result()


def test_it_sees_the_callers_context():
    token = NAME.set("the caller's")
    try:
        assert background.start(NAME.get).result() == "the caller's"
    finally:
        NAME.reset(token)


def test_a_program_ends_without_the_answer():
    text = (
        "import threading; from course_lib.base import background;"
        " background.start(threading.Event().wait); print('end')"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=paths.ROOT, capture_output=True, text=True, timeout=250
    )
    assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr
