"""How many programs of a kernel one multiprocessor holds at a time, by what each of its resources has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.base.errors import CourseError


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor of an architecture holds; ``reserved`` bytes of shared memory a program are the system's own."""

    warps: int
    programs: int
    shared_bytes: int
    shared_bytes_a_program: int
    reserved: int
    registers: int = 65536


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
MULTIPROCESSORS = {
    "sm_75": Multiprocessor(warps=32, programs=16, shared_bytes=64 << 10, shared_bytes_a_program=64 << 10, reserved=0),
    "sm_80": Multiprocessor(
        warps=64, programs=32, shared_bytes=164 << 10, shared_bytes_a_program=163 << 10, reserved=1024
    ),
    "sm_86": Multiprocessor(
        warps=48, programs=16, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024
    ),
    "sm_89": Multiprocessor(
        warps=48, programs=24, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024
    ),
    "sm_90": Multiprocessor(
        warps=64, programs=32, shared_bytes=228 << 10, shared_bytes_a_program=227 << 10, reserved=1024
    ),
    "sm_100": Multiprocessor(
        warps=64, programs=32, shared_bytes=228 << 10, shared_bytes_a_program=227 << 10, reserved=1024
    ),
    "sm_120": Multiprocessor(
        warps=48, programs=24, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024
    ),
}
_PARTITIONS = 4  # a multiprocessor's register file is four files, each for the warps of its own scheduler
_WARP_REGISTERS = 256  # a warp gets its registers in pieces of this many
_SHARED_PIECE = {"sm_75": 256}
_LATER_SHARED_PIECE = 128


def occupancy(arch: str, registers: int, shared: int, num_warps: int) -> int:
    """Warps that are resident on one multiprocessor at a time; 0 if a program does not fit at all.

    Args: registers per thread, shared bytes per program, warps per program.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    return residency(arch, registers, shared, num_warps).warps


@dataclass(frozen=True)
class Residency:
    """How many programs of ``num_warps`` warps one multiprocessor holds at a time, by what each of its resources has room for.

    ``programs`` has the keys "warps", "programs", "registers" and "shared memory"; ``most`` is the multiprocessor's warps.
    """

    num_warps: int
    most: int
    programs: Mapping[str, int]

    @property
    def warps(self) -> int:
        return min(self.programs.values()) * self.num_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What has room for the fewest programs; empty where every warp of the multiprocessor is taken."""
        fewest = min(self.programs.values())
        return (
            () if self.warps == self.most else tuple(name for name, count in self.programs.items() if count == fewest)
        )


def residency(arch: str, registers: int, shared: int, num_warps: int) -> Residency:
    """The programs that warps, programs, registers and shared memory each leave room for on one multiprocessor.

    Args: registers per thread, shared bytes per program, warps per program.

    Registers go to a warp in pieces of 256 and come from one of four register files; shared memory goes to a program in
    pieces of 128 bytes (256 on sm_75), 1 KB of it taken by the system from sm_80 on. The allocation rules are those of
    ``cuda_occupancy.h`` in the CUDA toolkit.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    limits = multiprocessor(arch)
    if num_warps < 1 or registers < 0 or shared < 0:
        raise ValueError(
            f"registers={registers}, shared={shared}, num_warps={num_warps}: a program has 1 warp or more, and no negative sizes"
        )
    a_warp = _round_up(registers * 32, _WARP_REGISTERS)
    if registers > 255 or a_warp * _round_up(num_warps, _PARTITIONS) > limits.registers:
        by_registers = 0
    else:
        by_registers = (
            limits.registers // _PARTITIONS // a_warp * _PARTITIONS // num_warps if a_warp else limits.programs
        )
    taken = _round_up(shared + limits.reserved, _SHARED_PIECE.get(arch, _LATER_SHARED_PIECE))
    by_shared = limits.shared_bytes // taken if taken else limits.programs
    if shared > limits.shared_bytes_a_program:
        by_shared = 0
    programs = {
        "warps": limits.warps // num_warps, "programs": limits.programs, "registers": by_registers, "shared memory": by_shared,
    }  # fmt: skip
    return Residency(num_warps, limits.warps, programs)


def multiprocessor(arch: str) -> Multiprocessor:
    """What one multiprocessor of the architecture holds.

    Raises: CourseError for an architecture that is not in MULTIPROCESSORS.
    """
    if arch not in MULTIPROCESSORS:
        raise CourseError(
            f"the architecture {arch!r} is not one the course knows; it can be {', '.join(MULTIPROCESSORS)}."
        )
    return MULTIPROCESSORS[arch]


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
