"""Let ``triton.autotune`` and ``triton.testing.do_bench`` run without a GPU, and warn that their
times are not those of a GPU.

Both ask Triton for its active driver, and fail if there is none. The driver here has only the clock
of the host. It measures the interpreter, whose times say nothing about a GPU; the first measurement
warns of that.
"""

from __future__ import annotations

import time
import warnings

from course_lib.base.translation import gettext as _


class InterpreterTiming(UserWarning):
    """Warns that a time is that of Triton's interpreter on the CPU."""


class _Event:
    """Takes the place of a device's event in do_bench, with the clock of the host."""

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
        """Do nothing: the interpreter has finished when the launch returns."""


class HostClock:
    """The part of a Triton driver that benchmarking uses."""

    def get_device_interface(self) -> type[_Interface]:
        warnings.warn(
            _(
                "course: this time is the CPU interpreter's, not a GPU's. It says nothing about"
                " which kernel or configuration is fast."
            ),
            InterpreterTiming,
            stacklevel=3,
        )
        return _Interface

    def get_empty_cache_for_benchmark(self) -> None:
        """Return no memory: there is no L2 cache to clear."""

    def clear_cache(self, cache: None) -> None:
        pass

    def get_benchmarker(self):
        from triton.testing import do_bench

        return do_bench


def use_the_hosts_clock() -> None:
    """Make HostClock Triton's active driver if no real one was found.

    Raises: AttributeError if this Triton has no such setting.
    """
    from triton.runtime import driver

    # HostClock is no subclass of Triton's driver, whose base class needs a compiler and a device.
    driver.set_active(HostClock())  # pyright: ignore[reportArgumentType]
