"""Compute how many programs of a kernel one multiprocessor holds at a time, from the limits of each
of its resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.base.errors import CourseError


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of one multiprocessor of an architecture; the system takes ``reserved`` bytes of
    shared memory per program."""

    warps: int
    programs: int
    shared_bytes: int
    shared_bytes_a_program: int
    reserved: int
    registers: int = 65536


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
MULTIPROCESSORS = {
    arch: Multiprocessor(warps, programs, shared << 10, shared_a_program << 10, reserved)
    for arch, warps, programs, shared, shared_a_program, reserved in (  # shared: in KiB
        ("sm_75", 32, 16, 64, 64, 0),
        ("sm_80", 64, 32, 164, 163, 1024),
        ("sm_86", 48, 16, 100, 99, 1024),
        ("sm_89", 48, 24, 100, 99, 1024),
        ("sm_90", 64, 32, 228, 227, 1024),
        ("sm_100", 64, 32, 228, 227, 1024),
        ("sm_120", 48, 24, 100, 99, 1024),
    )
}
_PARTITIONS = 4  # a multiprocessor has four register files, one per warp scheduler
_WARP_REGISTERS = 256  # registers are allocated to a warp in units of this size
_SHARED_PIECE = {"sm_75": 256}
_LATER_SHARED_PIECE = 128


def occupancy(arch: str, registers: int, shared: int, num_warps: int) -> int:
    """Return the number of warps that are resident on one multiprocessor at a time; 0 if not even
    one program fits.

    Args: registers per thread, shared bytes per program, warps per program.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    return residency(arch, registers, shared, num_warps).warps


@dataclass(frozen=True)
class Residency:
    """The number of programs of ``num_warps`` warps that each resource of one multiprocessor has
    room for.

    ``programs`` has the keys "warps", "programs", "registers" and "shared memory"; ``most`` is the
    multiprocessor's limit of warps.
    """

    num_warps: int
    most: int
    programs: Mapping[str, int]

    @property
    def warps(self) -> int:
        return min(self.programs.values()) * self.num_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Return the resources with room for the fewest programs; empty if every warp of the
        multiprocessor is used."""
        fewest = min(self.programs.values())
        return (
            ()
            if self.warps == self.most
            else tuple(name for name, count in self.programs.items() if count == fewest)
        )


def residency(arch: str, registers: int, shared: int, num_warps: int) -> Residency:
    """Compute how many programs fit on one multiprocessor, by its limits of warps, programs,
    registers and shared memory.

    Args: registers per thread, shared bytes per program, warps per program.

    A warp gets its registers in units of 256 from one of four register files. A program gets shared
    memory in units of 128 bytes (256 on sm_75), of which the system takes 1 KB from sm_80 on. The
    allocation rules are those of ``cuda_occupancy.h`` in the CUDA toolkit.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    limits = multiprocessor(arch)
    if num_warps < 1 or registers < 0 or shared < 0:
        raise ValueError(
            f"registers={registers}, shared={shared}, num_warps={num_warps}: a program has 1 warp"
            " or more, and no negative sizes"
        )
    a_warp = _round_up(registers * 32, _WARP_REGISTERS)
    if registers > 255 or a_warp * _round_up(num_warps, _PARTITIONS) > limits.registers:
        by_registers = 0
    else:
        by_registers = (
            limits.registers // _PARTITIONS // a_warp * _PARTITIONS // num_warps
            if a_warp
            else limits.programs
        )
    shared_taken = _round_up(shared + limits.reserved, _SHARED_PIECE.get(arch, _LATER_SHARED_PIECE))
    by_shared = limits.shared_bytes // shared_taken if shared_taken else limits.programs
    if shared > limits.shared_bytes_a_program:
        by_shared = 0
    programs = {
        "warps": limits.warps // num_warps,
        "programs": limits.programs,
        "registers": by_registers,
        "shared memory": by_shared,
    }
    return Residency(num_warps, limits.warps, programs)


def multiprocessor(arch: str) -> Multiprocessor:
    """Return the limits of one multiprocessor of the architecture.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    if arch not in MULTIPROCESSORS:
        raise CourseError(
            f"the architecture {arch!r} is not one the course knows; it can be"
            f" {', '.join(MULTIPROCESSORS)}."
        )
    return MULTIPROCESSORS[arch]


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
