"""Call observers before every memory operation of an interpreted kernel, and before every reduction
across its lanes.

The bounds checker, the tracer and the scheduler are such observers. Each operation has one hook, so
that Triton's private interpreter is patched in one place. Without an observer a hook costs one
comparison.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(slots=True)
class MemoryAccess:
    """One memory operation of one program.

    ``kind`` is "load", "store", "cas", "barrier", or an atomic's name ("add", "max", "xchg", ...).
    ``addresses`` are bytes, int64, in the shape of the block; ``mask`` has that shape, False where
    the lane takes no part. ``values`` are the operands of a store or an atomic, in the
    interpreter's own representation (bf16 as uint16). A barrier has no lanes.
    """

    kind: str
    addresses: np.ndarray
    mask: np.ndarray
    itemsize: int
    program: tuple[int, int, int]
    values: np.ndarray | None = None
    expected: np.ndarray | None = None  # the value that a cas compares with
    sem: str = ""  # an atomic's memory order, as Triton names it; "relaxed" for a volatile load
    _live: np.ndarray | None = None

    @property
    def writes(self) -> bool:
        return self.kind not in ("load", "barrier")

    @property
    def is_atomic(self) -> bool:
        return self.kind not in ("load", "store", "barrier")

    def live(self) -> np.ndarray:
        """Return the addresses of the lanes that take part, flat. All observers share the array: do
        not write to it."""
        if self._live is None:
            self._live = self.addresses[self.mask]
        return self._live


Observer = Callable[[MemoryAccess], None]
_observers: list[Observer] = []
_reduction_observers: list[Callable[[], None]] = []
_patched = False


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Call ``observer`` before each memory operation inside the block. An exception of the observer
    stops the kernel there.

    Raises: AttributeError if this Triton's interpreter has not the operations that are hooked.
    """
    with _listening(_observers, observer):
        yield


@contextlib.contextmanager
def observing_reductions(observer: Callable[[], None]) -> Iterator[None]:
    """Call ``observer`` before each reduction or scan of two lanes or more inside the block.

    Raises: AttributeError if this Triton's interpreter has not the operations that are hooked.
    """
    with _listening(_reduction_observers, observer):
        yield


@contextlib.contextmanager
def _listening(
    observers: list[Callable[..., None]], observer: Callable[..., None]
) -> Iterator[None]:
    """Have ``observer`` among ``observers`` inside the block."""
    patch()
    observers.append(observer)
    try:
        yield
    finally:
        observers.remove(observer)


def line_of_kernel() -> tuple[str, int] | None:
    """Return file and line of the innermost frame of a kernel, called from inside an observer; None
    if there is none."""
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
    from triton.runtime.interpreter import ReduceOps, ScanOps, interpreter_builder

    stock = {name: getattr(Builder, name) for name in _OPERATIONS}
    reductions = {operations: operations.apply_impl for operations in (ReduceOps, ScanOps)}

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
            None if values is None else values.data, None if expected is None else expected.data,
            str(sem).split(".")[-1].lower(),
        )  # fmt: skip
        for observer in tuple(_observers):
            observer(access)

    def create_masked_load(self, ptrs, mask, other, *rest, **named):
        # before is_volatile come two arguments in Triton 3.7, and one in 3.9
        is_volatile = named["is_volatile"] if "is_volatile" in named else rest[-1]
        if _observers:
            tell("load", ptrs, mask, sem="relaxed" if is_volatile else "")
        return stock["create_masked_load"](self, ptrs, mask, other, *rest, **named)

    def create_masked_store(self, ptrs, value, mask, *rest):
        if _observers:
            tell("store", ptrs, mask, value)
        return stock["create_masked_store"](self, ptrs, value, mask, *rest)

    def find_order(sem, scope):
        """Return the memory order that an atomic has for other programs, or "cta" if its scope
        leaves them out."""
        return "cta" if str(scope).lower().endswith("cta") else sem

    def create_atomic_cas(self, ptr, cmp, val, sem, scope):
        if _observers:
            tell("cas", ptr, None, val, cmp, find_order(sem, scope))
        return stock["create_atomic_cas"](self, ptr, cmp, val, sem, scope)

    def create_atomic_rmw(self, operation, ptr, val, mask, sem, scope):
        if _observers:
            tell(
                str(operation).split(".")[-1].lower(), ptr, mask, val, None, find_order(sem, scope)
            )
        return stock["create_atomic_rmw"](self, operation, ptr, val, mask, sem, scope)

    def create_barrier(self, *rest):
        if _observers:
            nothing = np.zeros(0, np.int64)
            for observer in tuple(_observers):
                observer(
                    MemoryAccess("barrier", nothing, nothing.astype(bool), 1, current_program())
                )
        return stock["create_barrier"](self, *rest)

    def apply_impl(self, arguments):
        if _reduction_observers:
            shape = arguments[0].shape
            if (math.prod(shape) if self.axis is None else shape[self.axis]) > 1:
                for observer in tuple(_reduction_observers):
                    observer()
        return reductions[type(self)](self, arguments)

    for operations in reductions:
        setattr(operations, apply_impl.__name__, apply_impl)
    for hook in (
        create_masked_load,
        create_masked_store,
        create_atomic_cas,
        create_atomic_rmw,
        create_barrier,
    ):
        setattr(Builder, hook.__name__, hook)
    _patched = True


_OPERATIONS = (
    "create_masked_load",
    "create_masked_store",
    "create_atomic_cas",
    "create_atomic_rmw",
    "create_barrier",
)


def is_machinery(filename: str) -> bool:
    """Return True for a file whose frames never belong to a kernel."""
    return filename.startswith(_MACHINERY)


def _find_machinery() -> tuple[str, ...]:
    """Return the folders of files whose frames never belong to a kernel: those of Triton, NumPy and
    this package."""
    import triton

    # Keep the separator at the end: another package whose name begins with "triton" may hold
    # kernels.
    return tuple(
        str(Path(file).parent) + os.sep for file in (triton.__file__, np.__file__, __file__)
    )


_MACHINERY = _find_machinery()
