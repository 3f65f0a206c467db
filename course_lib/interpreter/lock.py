"""Allow one interpreted launch at a time.

In JupyterLab the callback of a widget runs in another thread than the running cell. The interpreter
keeps its grid index and its patched language in globals, so that two launches at once corrupt each
other. The lock is re-entrant, because a kernel that a callback launches may launch another kernel.
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
        # A GPU gives no warning of an overflow or a NaN, and both are common in masked lanes.
        with LOCK, np.errstate(all="ignore"):
            return stock_call(self, *args, **kwargs)

    GridExecutor.__call__ = __call__
