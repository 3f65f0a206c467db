"""Measure the statistics kernels of lesson 05: rows that stay in registers and rows that are
streamed, in one sweep and in two.

Each row has provider, M, N, dtype, sweeps (how often the kernel loads x), us (device time of one
call), gbps (M N itemsize, one read of x, over that time) and over_floor (time over that of the
fastest pass that reads as many bytes once, same run). Providers: "one_pass", "shifted", "two_pass",
"welford" (streamed), "resident" (two passes in registers), "resident_welford" (the Welford kernel
with the whole row in one block), "torch" (torch.var_mean).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

import course_lib
from course_lib.bench import measurement, tables
from course_lib.bench.measurement import Measurement
from course_lib.bench.timing import device_us
from course_lib.kernels.launch import tables as launch_tables
from course_lib.kernels.row_statistics import row_statistics, welford_kernel
from course_lib.norms import reference

KIND = "statistics"
COLUMNS = (1024, 4096, 16384, 65536, 262144)
RESIDENT_COLUMNS = 16384  # the longest row that both resident kernels hold without spills
SWEEPS = {
    "one_pass": 1,
    "shifted": 1,
    "two_pass": 2,
    "welford": 1,
    "resident": 1,
    "resident_welford": 1,
    "torch": 1,
}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16}
# elements of x: 1 GB in fp32. At 262144 columns even the rows at work are several times any L2
# cache.
_ELEMENTS = 2**28
_COUNT = 2  # inputs per graph; each is many times the cache

Call = Callable[[torch.Tensor], Sequence[torch.Tensor]]  # x -> mean and var of its rows


def latest(columns: tuple[int, ...] = COLUMNS) -> Measurement | None:
    """Measure now if there is a GPU; else return the newest stored measurement, or None if there is
    none yet.

    Raises: CourseError if the stored one cannot be read.
    """
    if course_lib.MODE == "gpu":
        return measure(columns)
    return measurement.stored(KIND) if measurement.is_stored(KIND) else None


def measure(columns: tuple[int, ...] = COLUMNS) -> Measurement:
    """Time every provider at every row length, fp32 and fp16, M x N = 2^28 elements.

    Raises: CourseError without a GPU; AssertionError if a provider's values are wrong, since its
    time would mean nothing.
    """
    result = measurement.new(
        KIND,
        "device time, CUDA graph over two inputs of 0.5 or 1 GB, median of 12 replays; floor: a sum"
        " over x, or half of an out-of-place copy",
    )
    for dtype in DTYPES:
        for N in columns:
            _measure_row_length(result, _ELEMENTS // N, N, dtype)
    return result


def providers(N: int) -> dict[str, Call]:
    """Return the calls to time for rows of N columns."""
    calls: dict[str, Call] = {
        name: lambda x, name=name: row_statistics(x, name)
        for name in ("one_pass", "shifted", "two_pass", "welford")
    }
    if N <= RESIDENT_COLUMNS:
        calls["resident"] = lambda x: row_statistics(x, "resident")
        calls["resident_welford"] = resident_welford
    calls["torch"] = lambda x: torch.var_mean(x, dim=1, correction=0)[::-1]
    return calls


def resident_welford(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Run the Welford kernel with a block that holds the row: with one element per lane, all the
    work is in the merge."""
    M, N = x.shape
    _, block, num_warps = launch_tables.resident(N)
    mean, var = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    # Triton types a kernel as its function, without launch options.
    welford_kernel[(M,)](
        x,
        mean,
        var,
        x.stride(0),
        x.stride(1),
        N,
        BLOCK=block,
        num_warps=num_warps,  # pyright: ignore[reportCallIssue]
    )
    return mean, var


def _measure_row_length(result: Measurement, M: int, N: int, dtype: str) -> None:
    inputs = [torch.randn(M, N, device="cuda", dtype=DTYPES[dtype]) + 1 for _ in range(_COUNT)]
    size, floor = inputs[0].element_size() * M * N, floor_us(inputs)
    for provider, call in providers(N).items():
        assert_right(provider, call, inputs[0])
        us = device_us([lambda x=x, call=call: call(x) for x in inputs])
        names = {"provider": provider, "M": M, "N": N, "dtype": dtype, "sweeps": SWEEPS[provider]}
        result.rows.append(measurement.row(**names, us=us, moved=size, floor=floor))


def floor_us(inputs: Sequence[torch.Tensor]) -> float:
    """Return the microseconds of the fastest pass that reads one of the inputs once."""
    target = torch.empty_like(inputs[0])
    copied = device_us([lambda x=x: target.copy_(x) for x in inputs])
    return min(copied / 2, device_us([lambda x=x: x.sum() for x in inputs]))


def assert_right(provider: str, call: Call, x: torch.Tensor) -> None:
    """Raise AssertionError, with the provider's name, if mean or var of the first rows of x are
    wrong."""
    mean, var = (reference.float64(value[:4]) for value in call(x))
    exact = reference.float64(x[:4])
    worst = max(abs(mean - exact.mean(axis=1)).max(), abs(var - exact.var(axis=1)).max())
    # torch returns x's dtype
    limit = 1e-2 if provider == "torch" and x.dtype == torch.float16 else 1e-4
    assert worst < limit, f"{provider} is wrong by {worst:.3g}: not timed"


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table of time over floor, with one line per dtype and provider and one column per row
    length."""
    return tables.over_floor(result, width, ("dtype", "provider"))
