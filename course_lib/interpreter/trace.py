"""Record what an interpreted kernel reads and writes, as data for figures, pass counts and tests.

The bytes are those that the kernel asks for, lane by lane. A GPU moves fewer where a cache has the
data.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from course_lib.interpreter import hooks
from course_lib.interpreter.bounds import Region, find_region, require_interpreter


@dataclass(frozen=True, eq=False)
class Event:
    """One access of one program.

    ``offsets`` (int64, flat, one per lane that takes part) count elements from the tensor's element
    0. ``tensor`` is None where the lanes are not all elements of one region; the offsets are then
    addresses in bytes. ``kind`` is that of :class:`hooks.MemoryAccess`; a barrier has no lanes.
    """

    program: tuple[int, int, int]
    kind: str
    tensor: str | None
    offsets: np.ndarray
    masked: int  # lanes that take no part
    itemsize: int
    file: str | None
    line: int | None

    @property
    def lanes(self) -> int:
        return self.offsets.size

    @property
    def bytes(self) -> int:
        """Return the bytes that the access loads or stores. An atomic counts once, with the bytes
        of its operand."""
        return self.offsets.size * self.itemsize

    @property
    def is_atomic(self) -> bool:
        return self.kind not in ("load", "store", "barrier")


@dataclass
class Trace:
    """The events in their order, and the regions whose names they use."""

    regions: tuple[Region, ...]
    events: list[Event] = field(default_factory=list)

    def bytes(self, tensor: str | None = None, kind: str | None = None) -> int:
        """Return the bytes asked for, of one tensor or of all, by one kind of access or by all.

        ``kind`` is an event's kind, or "atomic" for every atomic.

        Raises: ValueError if no region is named ``tensor``.
        """
        if tensor is not None:
            self._region(tensor)
        return sum(
            event.bytes
            for event in self.events
            if tensor in (None, event.tensor)
            and (kind in (None, event.kind) or (kind == "atomic" and event.is_atomic))
        )

    def passes(self, tensor: str, kind: str | None = None) -> float:
        """Return how often the kernel goes through the tensor: the bytes asked for, divided by its
        size (0 if it has no elements).

        Raises: ValueError if no region is named ``tensor``.
        """
        region = self._region(tensor)
        return self.bytes(tensor, kind) / region.nbytes if region.nbytes else 0.0

    def _region(self, name: str) -> Region:
        for region in self.regions:
            if region.name == name:
                return region
        raise ValueError(
            f"no tensor {name!r} was traced; there are"
            f" {', '.join(region.name for region in self.regions) or 'none'}"
        )


@contextlib.contextmanager
def tracing(regions: Iterable[Region]) -> Iterator[Trace]:
    """Record the accesses of the kernels that this thread launches inside the block; the trace
    fills as they run.

    Where two regions share memory (a kernel that works in place), an access gets the name of the
    first one that holds it. An access at which an earlier observer raises is not part of the trace.

    Raises: CourseError if this process compiles its kernels; ValueError if two regions have one
    name.
    """
    require_interpreter("accesses can only be traced")
    trace, owner = Trace(tuple(regions)), threading.get_ident()
    names = [region.name for region in trace.regions]
    if len(set(names)) < len(names):
        raise ValueError(f"two traced tensors have one name: {', '.join(names)}")

    def record(access: hooks.MemoryAccess) -> None:
        if threading.get_ident() != owner:
            return  # the kernel of a widget, which runs in another thread
        live = access.live()
        region = find_region(trace.regions, live, access.itemsize) if live.size else None
        offsets = live if region is None else (live - region.address) // region.itemsize
        file, line = hooks.line_of_kernel() or (None, None)
        masked = access.mask.size - live.size
        trace.events.append(
            Event(
                access.program,
                access.kind,
                region.name if region else None,
                offsets,
                masked,
                access.itemsize,
                file,
                line,
            )
        )

    with hooks.observing(record):
        yield trace
