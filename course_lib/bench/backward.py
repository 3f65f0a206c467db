"""Backward kernels of lessons 08 and 09, timed against PyTorch, torch.compile and the floor.

    python -m course_lib.bench.backward       measures on this machine's GPU, saves, prints a table

Each row has op ("layer_norm_backward", "rms_norm_backward"), provider ("persistent", "split", "two-stage", "locked", "columns", "torch",
"compile"), M, N, dtype, us (device time of one call: dx, dw and db), gbps (the least bytes a backward pass can move, 3 M N
elements, over that time) and over_floor (time over the fastest elementwise pass over as many bytes, same run).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

import course_lib
from course_lib import reference
from course_lib.bench import measurement
from course_lib.bench.forward import table
from course_lib.bench.measurement import Measurement
from course_lib.bench.timing import device_us
from course_lib.kernels import launch_table
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.rms_norm_backward import rms_norm_backward

KIND = "backward"
COLUMNS = (256, 1024, 2048, 4096, 8192, 16384, 32768)
_ELEMENTS = 2**25  # of x: 64 MB in fp16, more than the L2 cache of an H100
_TOUCHED = 400 << 20  # bytes that one graph reads, eight times that cache
_EPS = 1e-5

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]  # dy, x, mean, rstd
Call = Callable[[Inputs], tuple]


def latest(columns: tuple[int, ...] = COLUMNS) -> Measurement:
    """Measured now where there is a GPU; elsewhere the newest stored measurement.

    Raises: CourseError if nothing is stored.
    """
    return measure(columns, compiled=False) if course_lib.MODE == "gpu" else measurement.stored(KIND)


def measure(columns: tuple[int, ...] = COLUMNS, *, compiled: bool = True) -> Measurement:
    """Time every provider at every row length, fp16, M x N = 2^25 elements.

    Args:
        columns: the row lengths.
        compiled: torch.compile as well, which takes seconds a row length to compile.

    Raises: CourseError without a GPU; AssertionError if a provider's values are wrong (a fast wrong kernel is not fast).
    """
    result = measurement.new(
        KIND,
        "device time, CUDA graph over inputs of 400 MB or more, median of 12 replays; floor: the fastest of three additions of dy and x",
    )
    for N in columns:
        _measure_row_length(result, _ELEMENTS // N, N, compiled)
    return result


def _measure_row_length(result: Measurement, M: int, N: int, compiled: bool) -> None:
    w, b = torch.rand(N, device="cuda", dtype=torch.float16) + 0.5, torch.randn(N, device="cuda", dtype=torch.float16)
    inputs = [_inputs(M, N, w, b) for _ in range(max(2, _TOUCHED // (6 * M * N)))]
    floor = _floor([(dy, x) for dy, x, _, _ in inputs])
    for (op, provider), call in _providers(N, w, b, compiled).items():
        _assert_right(op, call, inputs[0], w)
        us = device_us([lambda i=i, call=call: call(i) for i in inputs])
        result.rows.append(
            {
                "op": op,
                "provider": provider,
                "M": M,
                "N": N,
                "dtype": "fp16",
                "us": round(us, 2),
                "gbps": round(6 * M * N / us * 1e-3),
                "over_floor": round(us / floor, 3),
            }
        )


def _inputs(M: int, N: int, w: torch.Tensor, b: torch.Tensor) -> Inputs:
    x = torch.randn(M, N, device="cuda", dtype=torch.float16) + 1
    _, mean, rstd = layer_norm_forward(x, w, b, _EPS)
    return torch.randn_like(x), x, mean, rstd


def _floor(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Reads two matrices and writes one, as a backward pass must; over flat views, which no row length can slow down."""
    flat = [(dy.view(-1), x.view(-1)) for dy, x in pairs]
    target = torch.empty_like(flat[0][0])
    return min(
        device_us([lambda p=p: torch.add(*p) for p in flat]),
        device_us([lambda p=p: torch.add(*p, out=target) for p in flat]),
        device_us([lambda p=p: torch.mul(*p) for p in flat]),
    )


def _providers(N: int, w: torch.Tensor, b: torch.Tensor, compiled: bool) -> dict[tuple[str, str], Call]:
    shape, every = [N], [True, True, True]

    def torch_layer_norm(i: Inputs) -> tuple:
        return torch.ops.aten.native_layer_norm_backward(i[0], i[1], shape, i[2][:, None], i[3][:, None], w, b, every)

    def torch_rms_norm(i: Inputs) -> tuple:
        return torch.ops.aten._fused_rms_norm_backward(i[0], i[1], shape, i[3][:, None], w, every[:2])

    calls: dict[tuple[str, str], Call] = {}
    fits = N <= launch_table.PERSISTENT_LIMIT
    for algorithm in ("persistent" if fits else "split", "two-stage", *(("locked",) if fits else ()), "columns"):
        calls["layer_norm_backward", algorithm] = lambda i, a=algorithm: layer_norm_backward(i[0], i[1], w, i[2], i[3], algorithm=a)
        if algorithm != "locked":
            calls["rms_norm_backward", algorithm] = lambda i, a=algorithm: rms_norm_backward(i[0], i[1], w, i[3], algorithm=a)
    for op, call in (("layer_norm_backward", torch_layer_norm), ("rms_norm_backward", torch_rms_norm)):
        calls[op, "torch"] = call
        if compiled:
            calls[op, "compile"] = torch.compile(call, dynamic=False)
    return calls


def _assert_right(op: str, call: Call, inputs: Inputs, w: torch.Tensor) -> None:
    """dx on a few rows in float64 NumPy; dw over all rows against a float64 sum on the device."""
    dy, x, mean, rstd = inputs
    dx, dw = call(inputs)[:2]
    few = slice(0, 4)
    if op == "layer_norm_backward":
        want = reference.layer_norm_vjp(dy[few], x[few], w, _EPS).dx
        xhat = (x.double() - mean.double()[:, None]) * rstd.double()[:, None]
    else:
        # the saved rstd is LayerNorm's here: the formula is the same, whatever it stands for
        r = reference.float64(rstd[few])[:, None]
        x64, wdy = reference.float64(x[few]), reference.float64(w) * reference.float64(dy[few])
        want = (wdy - x64 * r * (x64 * r * wdy).mean(axis=1, keepdims=True)) * r
        xhat = x.double() * rstd.double()[:, None]
    worst = np.abs(reference.float64(dx[few]) - want).max()
    assert worst < 2e-2, f"{op}: dx is wrong by {worst:.3g}: not timed"
    exact = (dy.double() * xhat).sum(0)
    worst = ((dw.double() - exact).abs() / (dy.double() * xhat).abs().sum(0).clamp(min=1.0)).max().item()
    assert worst < 2e-3, f"{op}: dw is wrong by {worst:.3g} of its terms: not timed"


if __name__ == "__main__":
    measurement.as_script(measure, table)
