"""The grader's tensors: each is a named view into a buffer of raw bytes, and everything outside the
view is poisoned.

Outputs and the gaps between strided rows start as NaN with a payload that no arithmetic produces.
The NaN of an output is a signalling one, so even an addition to it changes its bits. Every buffer
has a guard band on both sides. So an element that was never written, a write between rows or past
the end, and a changed input all show when the bytes come back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from course_lib.launching.description import ALIGNMENT

DTYPES = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
}
# False with the stand-in for ml_dtypes in the tests of the tab, which has fp16 in place of bf16
HAS_BF16 = DTYPES["bf16"] != DTYPES["fp16"]
_BITS = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
# The poison of outputs (True) and of inputs (False). They differ, because a copy of x's guard into
# y's guard has to leave a trace.
_POISON = {
    True: {
        "fp32": 0x7F80DEAD,
        "fp16": 0x7CAD,
        "bf16": 0x7FAD,
        "int32": 0x7ABCDEAD,
        "int64": 0x7ABCDEAD7ABCDEAD,
    },
    False: {
        "fp32": 0x7FC0BEEF,
        "fp16": 0x7EBE,
        "bf16": 0x7FBE,
        "int32": 0x7ABCBEEF,
        "int64": 0x7ABCBEEF7ABCBEEF,
    },
}
# Large finite numbers of each dtype: the bits of the smallest one, and the number of low bits that
# are drawn at random
_ORDINARY = {
    "fp32": (0x7E000000, 24),
    "fp16": (0x7800, 10),
    "bf16": (0x7E80, 7),
    "int32": (0x7A000000, 24),
    "int64": (0x7A00000000000000, 24),
}
GUARD = 64  # fewest elements on each side; a multiple of ALIGNMENT bytes


def size_guard(elements: int) -> int:
    """Return a guard of at least ``elements``: a kernel that goes so far past its tensor still
    meets this guard, and no other tensor."""
    return GUARD * -(-max(elements, 1) // GUARD)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the case: its layout, and its values if it is an input. ``values`` of an output
    are None, and it is poisoned.

    A ``scratch`` tensor is neither input nor output: it holds the kernel's locks or partial sums,
    starts with ``values`` or poisoned, and is not judged. ``poison``: the bits of an output's
    poison, if not the usual ones. ``any_dtype``: a function may also return it in another dtype.
    ``whole``: it has to be a Python or NumPy integer; 4.0 is wrong. An ``in_place`` output starts
    with ``values``, which are an input as well: of such an element nobody can say that it was never
    written. ``strides`` are in elements. A ``far`` tensor spans more memory than it uses. Its rows
    are sent to the child packed, and the child lays them ``strides[0]`` apart. The same holds for
    its columns, if they lie farther apart than its rows.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    values: np.ndarray | None = None
    far: bool = False
    guard: int = GUARD
    scratch: bool = False
    poison: int | None = None
    any_dtype: bool = False
    whole: bool = False
    in_place: bool = False
    # bytes from the beginning of the launch's memory to the guard before the tensor; its plan
    # places it
    offset: int = 0

    @property
    def is_output(self) -> bool:
        return (self.values is None or self.in_place) and not self.scratch

    @property
    def itemsize(self) -> int:
        return DTYPES[self.dtype].itemsize

    @property
    def start(self) -> int:
        """Return the bytes from the beginning of the launch's memory to element 0."""
        return self.offset + self.guard * self.itemsize

    @property
    def _poison(self) -> int:
        return _POISON[self.values is None][self.dtype] if self.poison is None else self.poison

    def place_anew(self, rng: np.random.Generator) -> Tensor:
        """Return the tensor at another address; an output starts as a large finite number, not as
        NaN."""
        ordinary, bits = _ORDINARY[self.dtype]
        moved = self.guard + int(rng.integers(1, GUARD)) * (ALIGNMENT // self.itemsize)
        drawn = ordinary + int(rng.integers(1 << bits))
        return replace(self, guard=moved, poison=None if self.values is not None else drawn)

    @property
    def packed_strides(self) -> tuple[int, ...]:
        """Strides in the bytes that are sent to the child: the real ones, or for a far tensor those
        of packed rows or columns."""
        if not self.far:
            return self.strides
        return (
            compute_strides(self.shape)
            if self.strides[0] >= self.strides[-1]
            else (1, self.shape[0])
        )

    @property
    def elements(self) -> int:
        """Elements of the buffer that is sent to the child, guards included. The buffer behind it
        is aligned, too."""
        span = 1 + sum(
            (size - 1) * stride
            for size, stride in zip(self.shape, self.packed_strides, strict=True)
        )
        step = ALIGNMENT // self.itemsize
        return -(-(self.guard + span + self.guard) // step) * step

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize

    def view(self, buffer: np.ndarray) -> np.ndarray:
        """Return the tensor's elements as a view into a flat array of ``elements`` items."""
        step = buffer.itemsize
        strides = tuple(stride * step for stride in self.packed_strides)
        return np.lib.stride_tricks.as_strided(buffer[self.guard :], self.shape, strides)

    def initial_bytes(self) -> bytes:
        """Return the buffer that the child starts with."""
        buffer = np.full(self.elements, self._poison, dtype=_BITS[self.itemsize]).view(
            DTYPES[self.dtype]
        )
        if self.values is not None:
            self.view(buffer)[...] = self.values
        return buffer.tobytes()

    def read(self, data: bytes) -> np.ndarray:
        """Return the tensor's elements in ``data``, in the tensor's own dtype."""
        return self.view(np.frombuffer(data, dtype=DTYPES[self.dtype]))

    def find_unwritten(self, data: bytes) -> np.ndarray:
        """Return True for each element that still holds the poison it started with."""
        bits = np.frombuffer(data, dtype=_BITS[self.itemsize])
        return self.view(bits) == self._poison

    def find_changed_outside(self, data: bytes) -> np.ndarray:
        """Return the buffer positions outside the tensor whose bits changed, relative to its first
        element."""
        bits = _BITS[self.itemsize]
        inside = np.zeros(self.elements, dtype=bool)
        self.view(inside)[...] = True
        changed = (
            np.frombuffer(data, dtype=bits) != np.frombuffer(self.initial_bytes(), dtype=bits)
        ) & ~inside
        return np.flatnonzero(changed) - self.guard


def compute_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the row-major strides of ``shape``, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def round_to(values: np.ndarray, dtype: str) -> np.ndarray:
    """Round ``values`` to ``dtype``. The kernel gets the rounded values, so the oracle has to
    compute from them, too."""
    with np.errstate(over="ignore"):  # some rows hold an Inf on purpose
        return np.asarray(values).astype(DTYPES[dtype])
