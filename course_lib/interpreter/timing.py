"""Lets ``triton.autotune`` and ``triton.testing.do_bench`` run without a GPU, and says what their numbers are not.

Both ask Triton for its active driver and fail where there is none. This driver has a clock, the host's, and nothing
else. The times are those of the interpreter: they rank nothing that a GPU would do, and the first one says so.
"""

from __future__ import annotations

import time
import warnings


class InterpreterTiming(UserWarning):
    """A time was taken on the CPU, of Triton's interpreter."""


class _Event:
    """What do_bench takes a device's event for, on the host's clock."""

    def __init__(self, enable_timing: bool = False):
        self.at = 0.0

    def record(self, stream=None) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        return (end.at - self.at) * 1e3


class _Interface:
    Event = _Event

    @staticmethod
    def synchronize() -> None:
        """The interpreter is done when the launch returns."""


class HostClock:
    """As much of a Triton driver as benchmarking asks for."""

    def get_device_interface(self) -> type[_Interface]:
        warnings.warn(
            "course: this time is the CPU interpreter's, not a GPU's. It says nothing about which kernel or configuration is fast.",
            InterpreterTiming,
            stacklevel=3,
        )
        return _Interface

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no L2 cache to push out."""

    def clear_cache(self, cache: None) -> None:
        pass

    def get_benchmarker(self):
        from triton.testing import do_bench

        return do_bench


def use_the_hosts_clock() -> None:
    """Make HostClock Triton's active driver, where no real one was found.

    Raises: AttributeError if this Triton has no such setting.
    """
    from triton.runtime import driver

    # as much of a driver as benchmarking asks for, and no subclass: Triton's base class wants a compiler and a device
    driver.set_active(HostClock())  # pyright: ignore[reportArgumentType]
