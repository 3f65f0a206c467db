"""What a launch asks of a device: how many programs run at once, and whether one kernel may start before another ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import triton

Kernel = TypeVar("Kernel")
_CPU_MULTIPROCESSORS = 4  # in the interpreter programs run one after another: few, and more than one


@functools.cache
def count_multiprocessors(device: torch.device) -> int:
    """Multiprocessors of the device; for the CPU a small number."""
    return (
        torch.cuda.get_device_properties(device).multi_processor_count
        if device.type == "cuda"
        else _CPU_MULTIPROCESSORS
    )


@functools.cache
def has_fast_memory(device: torch.device) -> bool:
    """True if a multiprocessor gets more than 30 GB/s of the memory's bandwidth: an H200 has 37 for each, an H100 25, an A100 19.

    By Little's law a multiprocessor then needs more bytes under way, and so more programs or fewer registers each: the launch
    tables have lines of their own for such a device.
    """
    if device.type != "cuda" or torch.version.hip is not None:
        return False
    driver: Any = triton.runtime.driver.active  # its base class does not declare utils
    found = driver.utils.get_device_properties(device.index)
    # two transfers a clock, in kHz; a width in bits
    bandwidth = 2e3 * found["mem_clock_rate"] * found["mem_bus_width"] / 8
    return bandwidth / count_multiprocessors(device) > 30e9


@functools.cache
def has_dependent_launch(device: torch.device) -> bool:
    """True if a kernel can start before the one ahead of it has ended: NVIDIA GPUs of compute capability 9 and more."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (9, 0)


def dependent_launch_options(dependent: bool) -> dict[str, bool]:
    """The launch option that starts a kernel before the one ahead of it has ended, where ``dependent``."""
    return {"launch_pdl": True} if dependent else {}


def needs_resident_programs(constexpr: str) -> Callable[[Kernel], Kernel]:
    """Marks a kernel whose programs wait for one another: as many as ``constexpr`` says have to be resident.

    The mark is the kernel's attribute ``resident_programs``. A GPU runs that many programs at once by itself, and does
    not read it. Who runs programs one after another, as Triton's interpreter does, has to read it and interleave them,
    or the first waits forever.
    """

    def mark(kernel: Kernel) -> Kernel:
        setattr(kernel, "resident_programs", constexpr)  # noqa: B010 - Triton's class declares no such attribute
        return kernel

    return mark
