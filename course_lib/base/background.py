"""A call that goes on beside its caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from course_lib.base.tab import IN_TAB

T = TypeVar("T")


def start(work: Callable[[], T]) -> Future[T]:
    """Call ``work`` in a thread of its own, in the caller's context. ``result()`` of what is returned waits, and raises what it raised.

    Unlike an executor's thread this one holds up nobody: where the answer is not wanted any more, the program may end without it.
    A browser tab has no threads: there the call is over when this function returns.
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
    """Call ``work``, which answers a click. In a browser tab it is called after the click's own call has ended: only then may it wait."""
    if IN_TAB:
        import asyncio

        asyncio.get_event_loop().call_soon(work)
    else:
        work()
