"""One interpreted launch at a time.

In JupyterLab a widget's callback runs in a thread beside the running cell, and the interpreter keeps its grid index
and its patched language in globals. Two launches at once corrupt each other; the lock is re-entrant because a kernel
launched from a callback may launch another.
"""

from __future__ import annotations

import threading

import numpy as np

LOCK = threading.RLock()


def serialise_launches() -> None:
    """Make every interpreted grid launch in this process take :data:`LOCK`.

    Raises: AttributeError if this Triton's interpreter has no GridExecutor.
    """
    from triton.runtime.interpreter import GridExecutor

    stock_call = GridExecutor.__call__

    def __call__(self, *args, **kwargs):
        # a GPU warns of no overflow and of no NaN, and masked lanes are full of both
        with LOCK, np.errstate(all="ignore"):
            return stock_call(self, *args, **kwargs)

    GridExecutor.__call__ = __call__
