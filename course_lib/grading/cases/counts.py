"""What a check counts of a kernel, so that the learner sees the price of their own code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Quantity(StrEnum):
    """What is counted."""

    READS = "reads"  # of one tensor, for each of its elements
    MEETINGS = "meetings"  # reductions across lanes, for each row
    MOVED = "moved"  # bytes of the matrices that are loaded and stored, for each element
    REGISTERS = "registers"  # of each thread
    SPILLED = "spilled"  # bytes of each thread
    LOADS = "loads"  # instructions of each thread that load from global memory

    @property
    def is_compiled(self) -> bool:
        """True if the compiler's report has it, and not a run in the interpreter."""
        return self in (Quantity.REGISTERS, Quantity.SPILLED, Quantity.LOADS)


@dataclass(frozen=True)
class Count:
    """One count of an exercise. ``course`` is that of the course's solution, ``least`` the lowest
    that any kernel for this exercise can have. ``tensor`` is whose reads are counted, or ""."""

    quantity: Quantity
    course: float
    least: float
    tensor: str = ""
