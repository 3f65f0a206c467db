"""Rows too long for one program, or too few to fill the device: the split-row kernels against the blocked ones and PyTorch.

    python -m course_lib.bench.long_rows       measures on this machine's GPU, saves, prints a table

Each row has op ("layer_norm M=...", "rms_norm M=..."), provider ("split", "blocked", "torch"), M, N, dtype, us (device time of one
call), gbps (2 M N elements over that time) and over_floor (time over the fastest elementwise pass over as many bytes,
same run; for a megabyte that is mostly the launch).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib import reference
from course_lib.bench import measurement
from course_lib.bench.forward import floor_us, table
from course_lib.bench.measurement import Measurement
from course_lib.bench.timing import device_us
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.rms_norm import rms_norm_forward

KIND = "long_rows"
COLUMNS = (65536, 131072, 262144)
ROWS = ("many", 16, 1)  # "many": as many as make 2^26 elements
_TOUCHED = 400 << 20  # bytes that one graph reads, eight times an H100's L2 cache
_MOST_INPUTS = 200
_EPS = 1e-5


def measure() -> Measurement:
    """Time every provider at every shape, fp16.

    Raises: CourseError without a GPU; AssertionError if a provider's values are wrong (a fast wrong kernel is not fast).
    """
    result = measurement.new(
        KIND, "device time, CUDA graph over inputs of 400 MB or more, median of 12 replays; floor: the fastest of three elementwise passes"
    )
    for rows in ROWS:
        for N in COLUMNS:
            _measure_shape(result, rows, 2**26 // N if rows == "many" else rows, N)
    return result


def _measure_shape(result: Measurement, rows: int | str, M: int, N: int) -> None:
    count = min(_MOST_INPUTS, max(2, _TOUCHED // (4 * M * N)))
    inputs = [torch.randn(M, N, device="cuda", dtype=torch.float16) + 1 for _ in range(count)]
    w, b = torch.rand(N, device="cuda", dtype=torch.float16) + 0.5, torch.randn(N, device="cuda", dtype=torch.float16)
    floor = floor_us(inputs)
    providers = {
        ("layer_norm", "split"): lambda x: layer_norm_forward(x, w, b, _EPS, algorithm="split")[0],
        ("layer_norm", "blocked"): lambda x: layer_norm_forward(x, w, b, _EPS, algorithm="blocked")[0],
        ("layer_norm", "torch"): lambda x: F.layer_norm(x, (N,), w, b, _EPS),
        ("rms_norm", "split"): lambda x: rms_norm_forward(x, w, _EPS, algorithm="split")[0],
        ("rms_norm", "blocked"): lambda x: rms_norm_forward(x, w, _EPS, algorithm="blocked")[0],
        ("rms_norm", "torch"): lambda x: F.rms_norm(x, (N,), w, _EPS),
    }
    for (op, provider), call in providers.items():
        few = inputs[0][:2]
        want = reference.layer_norm(few, w, b, _EPS).y if op == "layer_norm" else reference.rms_norm(few, w, _EPS).y
        worst = abs(reference.float64(call(inputs[0])[:2]) - want).max()
        assert worst < 3e-2, f"{op} {provider} is wrong by {worst:.3g}: not timed"
        us = device_us([lambda x=x, call=call: call(x) for x in inputs])
        result.rows.append(
            {
                "op": f"{op} M={rows}",
                "provider": provider,
                "M": M,
                "N": N,
                "dtype": "fp16",
                "us": round(us, 2),
                "gbps": round(4 * M * N / us * 1e-3),
                "over_floor": round(us / floor, 3),
            }
        )


if __name__ == "__main__":
    measurement.as_script(measure, table)
