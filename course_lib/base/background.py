"""Calls that run beside their caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from course_lib.base.tab import IN_TAB

T = TypeVar("T")


def start(work: Callable[[], T]) -> Future[T]:
    """Call ``work`` in a new thread, in the caller's context; return a future.

    The future's ``result()`` waits for ``work``, then returns its result or raises its exception.
    The thread is a daemon, unlike an executor's: the program may end before ``work`` does. A
    browser tab has no threads: there ``work`` runs before this function returns.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    if IN_TAB:
        run()
    else:
        threading.Thread(target=run, daemon=True).start()
    return future


def call_soon(work: Callable[[], object]) -> None:
    """Call ``work`` in answer to a click.

    In a browser tab the call comes after the click's own handler has returned: only then may
    ``work`` wait for something.
    """
    if IN_TAB:
        import asyncio

        asyncio.get_event_loop().call_soon(work)
    else:
        work()
