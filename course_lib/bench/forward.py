"""Forward kernels of lessons 06 and 07, timed against PyTorch and against the floor.

    python -m course_lib.bench.forward        measures on this machine's GPU, saves, prints a table

Each row has op ("layer_norm", "rms_norm", "add_rms_norm"), provider ("blocked", "resident", "torch", and for the fused
addition "resident" against "unfused"), M, N, dtype, us (device time of one call), gbps (the least bytes the operation
can move, over that time) and over_floor (time over the fastest elementwise pass over as many bytes, same run).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

import course_lib
from course_lib import reference
from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.bench.timing import device_us
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_forward

KIND = "forward"
COLUMNS = (256, 1024, 2048, 4096, 8192, 16384, 32768)
_ELEMENTS = 2**25  # of x: 64 MB in fp16, more than the L2 cache of an H100
_TOUCHED = 400 << 20  # bytes that one graph reads, eight times that cache
_EPS = 1e-5

Call = Callable[[torch.Tensor], object]


def latest(columns: tuple[int, ...] = COLUMNS) -> Measurement:
    """Measured now where there is a GPU; elsewhere the newest stored measurement.

    Raises: CourseError if nothing is stored.
    """
    return measure(columns) if course_lib.MODE == "gpu" else measurement.stored(KIND)


def measure(columns: tuple[int, ...] = COLUMNS) -> Measurement:
    """Time every provider at every row length, fp16, M x N = 2^25 elements.

    Raises: CourseError without a GPU; AssertionError if a provider's values are wrong (a fast wrong kernel is not fast).
    """
    result = measurement.new(
        KIND, "device time, CUDA graph over inputs of 400 MB or more, median of 12 replays; floor: the fastest of three elementwise passes"
    )
    for N in columns:
        _measure_row_length(result, _ELEMENTS // N, N)
    return result


def _measure_row_length(result: Measurement, M: int, N: int) -> None:
    count = max(2, _TOUCHED // (4 * M * N))
    inputs = [torch.randn(M, N, device="cuda", dtype=torch.float16) + 1 for _ in range(count)]
    w, b = torch.rand(N, device="cuda", dtype=torch.float16) + 0.5, torch.randn(N, device="cuda", dtype=torch.float16)
    residual = torch.randn(M, N, device="cuda", dtype=torch.float16)
    floor = floor_us(inputs)
    providers: dict[tuple[str, str], tuple[Call, int]] = {
        ("layer_norm", "blocked"): (lambda x: layer_norm_forward(x, w, b, _EPS, algorithm="blocked")[0], 2),
        ("layer_norm", "resident"): (lambda x: layer_norm_forward(x, w, b, _EPS, algorithm="resident")[0], 2),
        ("layer_norm", "torch"): (lambda x: F.layer_norm(x, (N,), w, b, _EPS), 2),
        ("rms_norm", "blocked"): (lambda x: rms_norm_forward(x, w, _EPS, algorithm="blocked")[0], 2),
        ("rms_norm", "resident"): (lambda x: rms_norm_forward(x, w, _EPS, algorithm="resident")[0], 2),
        ("rms_norm", "torch"): (lambda x: F.rms_norm(x, (N,), w, _EPS), 2),
        ("add_rms_norm", "resident"): (lambda x: add_rms_norm_forward(x, residual, w, _EPS)[1], 4),
        ("add_rms_norm", "unfused"): (lambda x: rms_norm_forward(x + residual, w, _EPS)[0], 4),
    }
    for (op, provider), (call, matrices) in providers.items():
        _assert_right(op, call, inputs[0], w, b, residual)
        us = device_us([lambda x=x, call=call: call(x) for x in inputs])
        result.rows.append(
            {
                "op": op,
                "provider": provider,
                "M": M,
                "N": N,
                "dtype": "fp16",
                "us": round(us, 2),
                "gbps": round(matrices * M * N * 2 / us * 1e-3),
                "over_floor": round(us / (floor * matrices / 2), 3),
            }
        )


def floor_us(inputs: list[torch.Tensor]) -> float:
    """Reads one matrix and writes one, over flat views: a clone of 5120 or 15872 columns takes a fifth longer than its bytes."""
    flat = [x.view(-1) for x in inputs]
    target = torch.empty_like(flat[0])
    return min(
        device_us([lambda x=x: x.clone() for x in flat]),
        device_us([lambda x=x: target.copy_(x) for x in flat]),
        device_us([lambda x=x: torch.add(x, 1.0) for x in flat]),
    )


def _assert_right(op: str, call: Call, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, residual: torch.Tensor) -> None:
    few = slice(0, 4)
    got = reference.float64(call(x)[few])
    if op == "layer_norm":
        want = reference.layer_norm(x[few], w, b, _EPS).y
    else:
        want = reference.rms_norm(x[few] if op == "rms_norm" else x[few] + residual[few], w, _EPS).y
    worst = abs(got - want).max()
    assert worst < 2e-2, f"{op} is wrong by {worst:.3g}: not timed"


def table(result: Measurement) -> str:
    """Time over floor, one line an operation and provider, one column a row length."""
    lengths = sorted({row["N"] for row in result.rows})
    lines = [f"{result.label()}; time over floor, N =".ljust(30) + "".join(f"{N:>9}" for N in lengths)]
    for op, provider in dict.fromkeys((row["op"], row["provider"]) for row in result.rows):
        by_length = {row["N"]: row["over_floor"] for row in result.rows if (row["op"], row["provider"]) == (op, provider)}
        lines.append(f"{op} {provider}".ljust(30) + "".join(f"{by_length[N]:>9.2f}" if N in by_length else f"{'-':>9}" for N in lengths))
    return "\n".join(lines)


if __name__ == "__main__":
    measurement.as_script(measure, table)
