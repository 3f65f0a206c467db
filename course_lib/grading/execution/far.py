"""Tensors whose rows, or columns, lie more than 2^30 elements apart, so that offsets in 32 bits overflow."""

from __future__ import annotations

from course_lib.sandbox import isolation


def far_bytes(case: dict) -> int:
    """Return the bytes of address space that the far tensors of the case take."""
    return sum(reach(tensor) + below(tensor) for tensor in case["tensors"] if tensor["far"])


def reach(tensor: dict) -> int:
    apart = tensor["strides"].index(max(tensor["strides"]))
    return (tensor["shape"][apart] - 1) * tensor["strides"][apart] * tensor["itemsize"] + 2**20


def below(tensor: dict) -> int:
    """Return how far below the tensor an offset can lie that has overflowed to a negative number."""
    return min(reach(tensor), 2**31 * tensor["itemsize"] + 2**20)


def pack(tensor: dict) -> tuple[int, ...]:
    """Return the strides of a far tensor in a message: there its rows follow each other, or its columns if those lie far apart."""
    shape, strides = tensor["shape"], tensor["strides"]
    return (shape[1], 1) if strides[0] >= strides[1] else (1, shape[0])


class FarTensor:
    """A tensor whose rows or columns lie far apart. It reserves address space; only pages that are accessed take memory.

    The mapping reaches below the tensor as well: an offset that overflowed to a negative number then reads
    zeros, and the case fails by its values instead of taking the process down.
    """

    def __init__(self, tensor: dict, memory):
        import numpy as np

        start = below(tensor)
        self.mapping = isolation.reserve(reach(tensor) + start)
        self.bytes = np.frombuffer(self.mapping, dtype=np.uint8)
        self.address = self.bytes.ctypes.data + start
        far, near = (0, 1) if tensor["strides"][0] >= tensor["strides"][1] else (1, 0)
        width, apart = tensor["shape"][near] * tensor["itemsize"], tensor["strides"][far] * tensor["itemsize"]
        self.rows = [(start + r * apart, tensor["start"] + r * width, width) for r in range(tensor["shape"][far])]
        for there, here, size in self.rows:
            self.bytes[there : there + size] = memory[here : here + size]

    def collect(self, memory) -> None:
        for there, here, size in self.rows:
            memory[here : here + size] = self.bytes[there : there + size]
