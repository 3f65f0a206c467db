"""Where every memory operation of an interpreted kernel can be seen, before it touches memory.

The bounds checker, the tracer and the scheduler are observers of one hook each operation, so that Triton's private
interpreter is patched in one place. With no observer the cost of an operation is one comparison.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(slots=True)
class MemoryAccess:
    """One memory operation of one program.

    ``kind`` is "load", "store", "cas", "barrier", or an atomic's name ("add", "max", "xchg", ...). ``addresses`` are
    bytes, int64, in the shape of the block; ``mask`` has that shape, False where the lane takes no part. ``values`` are
    what a store or an atomic brings, in the interpreter's own representation (bf16 as uint16). A barrier has no lanes.
    """

    kind: str
    addresses: np.ndarray
    mask: np.ndarray
    itemsize: int
    program: tuple[int, int, int]
    values: np.ndarray | None = None
    expected: np.ndarray | None = None  # what a cas compares with
    sem: str = ""  # an atomic's memory order, as Triton names it; "relaxed" for a volatile load
    _live: np.ndarray | None = None

    @property
    def writes(self) -> bool:
        return self.kind not in ("load", "barrier")

    @property
    def is_atomic(self) -> bool:
        return self.kind not in ("load", "store", "barrier")

    def live(self) -> np.ndarray:
        """The addresses of the lanes that take part, flat. Worked out once for all observers: not to be written to."""
        if self._live is None:
            self._live = self.addresses[self.mask]
        return self._live


Observer = Callable[[MemoryAccess], None]
_observers: list[Observer] = []
_patched = False


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Call ``observer`` before each memory operation inside the block. What it raises stops the kernel there.

    Raises: AttributeError if this Triton's interpreter has not the operations that are hooked.
    """
    patch()
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def line_of_kernel() -> tuple[str, int] | None:
    """File and line of the innermost frame that is a kernel's, seen from inside an observer; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != __file__:
        frame = frame.f_back  # the observer's own frames
    while frame is not None:
        if not is_machinery(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def patch() -> None:
    """Hook the operations, once a process.

    Raises: AttributeError if this Triton's interpreter has not the operations that are hooked.
    """
    global _patched
    if _patched:
        return
    from triton.runtime.interpreter import InterpreterBuilder as Builder
    from triton.runtime.interpreter import interpreter_builder

    stock = {name: getattr(Builder, name) for name in _OPERATIONS}

    def current_program() -> tuple[int, int, int]:
        x, y, z = interpreter_builder.grid_idx
        return int(x), int(y), int(z)

    def tell(kind: str, pointers, mask, values=None, expected=None, sem="") -> None:
        addresses = pointers.data.astype(np.int64, copy=False)
        live = np.ones(addresses.shape, bool) if mask is None else np.asarray(mask.data, dtype=bool)
        if live.shape != addresses.shape:
            live = np.broadcast_to(live, addresses.shape)
        width = pointers.get_element_ty().primitive_bitwidth
        access = MemoryAccess(
            kind, addresses, live, max(1, width // 8), current_program(),
            None if values is None else values.data, None if expected is None else expected.data, str(sem).split(".")[-1].lower(),
        )  # fmt: skip
        for observer in tuple(_observers):
            observer(access)

    def create_masked_load(self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile):
        if _observers:
            tell("load", ptrs, mask, sem="relaxed" if is_volatile else "")
        return stock["create_masked_load"](self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)

    def create_masked_store(self, ptrs, value, mask, *rest):
        if _observers:
            tell("store", ptrs, mask, value)
        return stock["create_masked_store"](self, ptrs, value, mask, *rest)

    def find_order(sem, scope):
        """What the atomic orders for other programs: with the scope of its own program ("cta") nothing."""
        return "relaxed" if str(scope).lower().endswith("cta") else sem

    def create_atomic_cas(self, ptr, cmp, val, sem, scope):
        if _observers:
            tell("cas", ptr, None, val, cmp, find_order(sem, scope))
        return stock["create_atomic_cas"](self, ptr, cmp, val, sem, scope)

    def create_atomic_rmw(self, operation, ptr, val, mask, sem, scope):
        if _observers:
            tell(str(operation).split(".")[-1].lower(), ptr, mask, val, None, find_order(sem, scope))
        return stock["create_atomic_rmw"](self, operation, ptr, val, mask, sem, scope)

    def create_barrier(self, *rest):
        if _observers:
            nothing = np.zeros(0, np.int64)
            for observer in tuple(_observers):
                observer(MemoryAccess("barrier", nothing, nothing.astype(bool), 1, current_program()))
        return stock["create_barrier"](self, *rest)

    for hook in (create_masked_load, create_masked_store, create_atomic_cas, create_atomic_rmw, create_barrier):
        setattr(Builder, hook.__name__, hook)
    _patched = True


_OPERATIONS = ("create_masked_load", "create_masked_store", "create_atomic_cas", "create_atomic_rmw", "create_barrier")


def is_machinery(filename: str) -> bool:
    """True for the files whose frames are never a kernel's."""
    return filename.startswith(_MACHINERY)


def _find_machinery() -> tuple[str, ...]:
    """The folders whose frames are never a kernel's: Triton, NumPy, this package."""
    import triton

    # with the separator: a package beside Triton whose name begins with "triton" holds kernels, not machinery
    return tuple(str(Path(file).parent) + os.sep for file in (triton.__file__, np.__file__, __file__))


_MACHINERY = _find_machinery()
