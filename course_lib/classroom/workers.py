"""The executors that run the checks for the engine: processes of this machine, or the workers of a
dask scheduler."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.sandbox import isolation

CONNECT_SECONDS = 10.0


@contextlib.contextmanager
def start_processes(count: int) -> Iterator[Executor]:
    """Run ``count`` worker processes. They end with the block, also after an exception, and if this
    process is killed.

    They are spawned and not forked, because this process has threads that draw a progress bar.
    """
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        count, mp_context=context, initializer=_begin_worker, initargs=(os.getpid(),)
    )
    # A process of the pool reads this when it starts: it then chooses between GPU and interpreter
    # only at its first check.
    os.environ["COURSE_DEFER_CHOICE"] = "1"
    try:
        yield executor
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()  # do not wait for the check that it may be running
        raise
    finally:
        os.environ.pop("COURSE_DEFER_CHOICE", None)
        executor.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    isolation.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the line above
    # Ctrl-C goes to the whole group of a terminal; the parent ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def connect(scheduler: str) -> Iterator[Executor]:
    """Connect to all workers of a dask scheduler, as one executor.

    Raises: EnvironmentFault if dask.distributed is not installed, or no scheduler answers at that
    address.
    """
    with _open_client(scheduler) as client, client.get_executor(pure=False) as executor:
        yield executor


def count_workers(scheduler: str) -> int:
    """Return the number of files that the workers of a dask scheduler check at a time: one per
    thread.

    Raises: the exceptions of :func:`connect`, and EnvironmentFault if the scheduler has no worker.
    """
    with _open_client(scheduler) as client:
        threads = sum(client.nthreads().values())
    if not threads:
        raise EnvironmentFault(
            _(
                "the scheduler at {address} has no worker. Start one on each machine: `dask worker"
                " {address} --nthreads 1`."
            ).format(address=scheduler)
        )
    return threads


@contextlib.contextmanager
def _open_client(scheduler: str) -> Iterator[Any]:
    try:
        import distributed
    except ImportError:
        raise EnvironmentFault(
            _(
                "--scheduler needs dask.distributed, which is not installed: `pip install -c"
                " constraints.txt -e .[cluster]`."
            )
        ) from None
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EnvironmentFault(
            _(
                "no dask scheduler answers at {address} ({error}). Start one with `dask scheduler`;"
                " the instructor's guide says how."
            ).format(address=scheduler, error=error)
        ) from None
    with client:
        yield client


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
