"""Run a launch in Triton's interpreter, on a copy of its memory, without PyTorch. Needs Triton's
interpreter mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib.interpreter import hooks, launch, schedule
from course_lib.interpreter.bounds import Region, checked
from course_lib.interpreter.findings import Schedule
from course_lib.interpreter.hooks import Observer
from course_lib.launching.description import ALIGNMENT, Launch
from course_lib.launching.far import FarTensor


def _ignore(access: hooks.MemoryAccess) -> None:
    pass


def _copy_aligned(memory: bytes) -> np.ndarray:
    """Return the bytes at an address that is a multiple of ALIGNMENT."""
    room = np.empty(len(memory) + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copied = room[start : start + len(memory)]
    copied[:] = np.frombuffer(memory, np.uint8)
    return copied


class PlacedLaunch:
    """A launch whose tensors lie in a copy of its memory. ``regions`` are the tensors there;
    ``memory`` are the copied bytes."""

    def __init__(self, described: Launch, memory: bytes):
        self.launch = described
        self.memory = _copy_aligned(memory)
        self._far = {
            tensor.name: FarTensor(tensor, self.memory)
            for tensor in described.tensors
            if tensor.far
        }
        places = {
            tensor.name: self._far[tensor.name].address
            if tensor.far
            else self.memory.ctypes.data + tensor.start
            for tensor in described.tensors
        }
        self.regions = [
            Region(t.name, places[t.name], t.itemsize, t.shape, t.strides)
            for t in described.tensors
        ]
        pointers = {
            tensor.name: launch.pointer(places[tensor.name], tensor.dtype)
            for tensor in described.tensors
        }
        self.arguments = [
            launch.integer(value) if type(value) is int else value
            for value in described.fill_in(pointers)
        ]

    def run(self, kernel: Any, observer: Observer = _ignore) -> None:
        """Run the programs in order. ``observer`` is called before each access that lies inside the
        tensors.

        Raises: OutOfBounds at an access outside of the tensors; otherwise as
        :func:`course_lib.interpreter.launch.launch`.
        """
        with self._checking(observer):
            launch.launch(
                kernel,
                self.launch.grid,
                launch.type_as_annotated(kernel, self.arguments),
                self.launch.constexprs,
                self.launch.sample,
            )

    def interleave(self, kernel: Any, observer: Observer = _ignore, **options: Any) -> Schedule:
        """Run the programs interleaved, with the ``options`` of
        :func:`course_lib.interpreter.schedule.run`, otherwise as :meth:`run`."""
        with self._checking(observer):
            return schedule.run(
                kernel,
                self.launch.grid,
                *launch.type_as_annotated(kernel, self.arguments),
                **options,
                **self.launch.constexprs,
            )

    def read_memory(self) -> bytes:
        """Return the launch's memory as it is now."""
        for far in self._far.values():
            far.collect(self.memory)
        return self.memory.tobytes()

    @contextlib.contextmanager
    def _checking(self, observer: Observer) -> Iterator[None]:
        try:
            hooks.patch()
        except AttributeError:
            # This version of Triton is not tested. The guards around outputs still show a write
            # outside. `course doctor` lists the losses.
            yield
            return
        with checked(self.regions), hooks.observing(observer):
            yield
