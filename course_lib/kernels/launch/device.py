"""Properties of a device that a launch depends on: multiprocessors, memory bandwidth, and dependent
launches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import triton

Kernel = TypeVar("Kernel")
# small, because the interpreter runs programs one after another, but more than 1
_CPU_MULTIPROCESSORS = 4


@functools.cache
def count_multiprocessors(device: torch.device) -> int:
    """Return the device's number of multiprocessors; a small number for the CPU."""
    return (
        torch.cuda.get_device_properties(device).multi_processor_count
        if device.type == "cuda"
        else _CPU_MULTIPROCESSORS
    )


@functools.cache
def count_shared_bytes(device: torch.device) -> int:
    """Return the shared memory that a program may have, in bytes; no limit for the CPU."""
    return (
        torch.cuda.get_device_properties(device).shared_memory_per_block_optin
        if device.type == "cuda"
        else 1 << 62
    )


@functools.cache
def find_bandwidth(device: torch.device) -> float:
    """Return the bandwidth of the device's memory in GB/s per multiprocessor; 0.0 for the CPU and
    for AMD's GPUs.

    docs/kernel-trials.md, "Faster memory, and few rows", explains why launches depend on it.
    """
    if device.type != "cuda" or torch.version.hip is not None:
        return 0.0
    driver: Any = triton.runtime.driver.active  # its base class does not declare utils
    found = driver.utils.get_device_properties(device.index)
    # two transfers per clock; the clock rate is in kHz, the width in bits
    return (
        2e-6 * found["mem_clock_rate"] * found["mem_bus_width"] / 8 / count_multiprocessors(device)
    )


@functools.cache
def has_dependent_launch(device: torch.device) -> bool:
    """Return whether a kernel can start before the previous one has ended: on NVIDIA GPUs of
    compute capability 9 or more."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device) >= (9, 0)
    )


def dependent_launch_options(dependent: bool) -> dict[str, bool]:
    """Return the launch option that starts a kernel before the previous one has ended; no option if
    not ``dependent``."""
    return {"launch_pdl": True} if dependent else {}


def needs_resident_programs(constexpr: str) -> Callable[[Kernel], Kernel]:
    """Mark a kernel whose programs wait for each other. The constexpr named here is the number of
    programs that have to run at once.

    The mark is the kernel's attribute ``resident_programs``. A GPU runs that many programs at once
    anyway and does not read the mark. An interpreter that would run programs one after another has
    to read it and interleave them, or the first program waits forever.
    """

    def mark(kernel: Kernel) -> Kernel:
        setattr(kernel, "resident_programs", constexpr)  # noqa: B010 - Triton's class declares no such attribute
        return kernel

    return mark
