"""Tensors whose rows, or columns, lie more than 2^30 elements apart, so that offsets in 32 bits
overflow."""

from __future__ import annotations

import numpy as np

from course_lib.launching.description import Launch, LaunchTensor
from course_lib.sandbox import isolation


def measure_far(launch: Launch) -> int:
    """Return the bytes of address space that the far tensors of the launch take."""
    return sum(
        measure_reach(tensor) + _measure_below(tensor) for tensor in launch.tensors if tensor.far
    )


def measure_reach(tensor: LaunchTensor) -> int:
    """Return the bytes from element 0 of a far tensor to its end, and some more."""
    apart = tensor.strides.index(max(tensor.strides))
    return (tensor.shape[apart] - 1) * tensor.strides[apart] * tensor.itemsize + 2**20


def _measure_below(tensor: LaunchTensor) -> int:
    """Return how far below the tensor an offset can lie that has overflowed to a negative
    number."""
    return min(measure_reach(tensor), 2**31 * tensor.itemsize + 2**20)


class FarTensor:
    """A tensor whose rows or columns lie far apart. It reserves address space; only pages that are
    accessed take memory.

    The mapping reaches below the tensor as well: an offset that overflowed to a negative number
    then reads zeros, and the case fails by its values instead of taking the process down.
    """

    def __init__(self, tensor: LaunchTensor, memory: np.ndarray):
        start = _measure_below(tensor)
        self.mapping = isolation.reserve(measure_reach(tensor) + start)
        self.bytes = np.frombuffer(self.mapping, dtype=np.uint8)
        self.address = self.bytes.ctypes.data + start
        far, near = (0, 1) if tensor.strides[0] >= tensor.strides[1] else (1, 0)
        width, apart = tensor.shape[near] * tensor.itemsize, tensor.strides[far] * tensor.itemsize
        self.rows = [
            (start + r * apart, tensor.start + r * width, width) for r in range(tensor.shape[far])
        ]
        for target, source, size in self.rows:
            self.bytes[target : target + size] = memory[source : source + size]

    def collect(self, memory: np.ndarray) -> None:
        for source, target, size in self.rows:
            memory[target : target + size] = self.bytes[source : source + size]
