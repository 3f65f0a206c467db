"""Rows of whole vectors of 16 bytes: the compiler is told so, loads them in vectors, and is never
told so wrongly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import course_lib
from course_lib.bench.operations import DTYPES
from course_lib.compiler import CompileReport, Pointer, compile_report
from course_lib.kernels.launch import choice, operands, tables
from course_lib.kernels.launch.device_classes import H100
from course_lib.kernels.layer_norm import layer_norm_forward, layer_norm_resident_kernel
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_resident_kernel
from course_lib.norms import reference

DEVICE = course_lib.DEVICE


def make(shape: tuple[int, ...], dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(DEVICE)


@pytest.mark.parametrize(
    ("dtype", "N", "row_strides", "vector"),
    [
        (torch.float16, 1000, (1000, 2008), 8),
        (torch.float16, 1000, (1000, 1004), 1),  # the second matrix's rows are not whole vectors
        (torch.float16, 1004, (1004,), 1),
        (torch.float16, 1024, (1024, 4096), 1),  # Triton sees that 16 divides them
        (torch.float16, 1024, (1032,), 8),
        (torch.float32, 500, (500, 504), 4),
        (torch.float32, 1004, (1004, 1008), 1),  # longer fp32 rows are no faster with vectors
        (torch.float32, 1002, (1002,), 1),
        (torch.float64, 1002, (1002,), 2),
        (torch.float32, 36, (0,), 4),  # an expanded row
    ],
)
def test_a_vector_divides_the_length_and_every_stride(dtype, N, row_strides, vector):
    x = torch.empty((1, N), dtype=dtype, device="meta")
    assert operands.find_vector(x, *row_strides) == vector
    if vector > 1:
        assert all(number % vector == 0 for number in (N, *row_strides))


def forward(kernel, N: int, dtype: str, vector: int) -> CompileReport:
    tile = tables.resident(N, DTYPES[dtype])
    x, sums = Pointer(dtype), Pointer("fp32")
    constexprs = {"HAS_W": True, "ROWS": tile.rows, "BLOCK": tile.block, "VECTOR": vector}
    if kernel is layer_norm_resident_kernel:
        arguments = [x, x, x, x, sums, sums, N, 1, N, 1, 1000, N, 1e-5]
        constexprs |= {"HAS_B": True}
    else:
        arguments = [x, x, x, x, x, sums, N, 1, N, 1, N, 1, 1000, N, 1e-5]
        constexprs |= {"ADD": True}
    return compile_report(kernel, arguments, constexprs, num_warps=tile.num_warps)


def backward(N: int, dtype: str, vector: int) -> CompileReport:
    launch = tables.persistent(N, DTYPES[dtype])
    x, sums = Pointer(dtype), Pointer("fp32")
    constexprs = {
        "CENTRED": True, "HAS_W": True, "FULL": False, "ROWS": launch.rows, "BLOCK": launch.block,
        "STAGES": launch.stages, "VECTOR": vector,
    }  # fmt: skip
    arguments = [x, x, x, sums, sums, x, x, sums, sums, N, 1, N, 1, N, 1000, N]
    return compile_report(
        norm_backward_persistent_kernel, arguments, constexprs, num_warps=launch.num_warps
    )


@pytest.mark.slow
@pytest.mark.skipif(course_lib.MODE != "cpu", reason="compiled where nothing else compiles")
@pytest.mark.parametrize(
    ("N", "dtype"), [(1000, "fp16"), (1000, "bf16"), (5000, "fp16"), (500, "fp32"), (8184, "bf16")]
)
def test_rows_of_whole_vectors_move_16_bytes_at_a_time(N, dtype):
    """Only numbers of a row, mean and rstd, are narrower: 4 bytes in and out."""
    vector = operands.find_vector(torch.empty((1, N), dtype=DTYPES[dtype], device="meta"), N)
    assert vector == 16 // DTYPES[dtype].itemsize
    made = [
        forward(kernel, N, dtype, vector)
        for kernel in (layer_norm_resident_kernel, rms_norm_resident_kernel)
    ]
    for report in (*made, backward(N, dtype, vector)):
        # w of 2 bytes beside sums of fp32 has vectors of 8
        assert min(set(report.loads) - {4}) >= 8 and max(report.loads) == 16, report.loads
        assert set(report.stores) <= {4, 8, 16} and report.stores[16], report.stores
    narrow = forward(layer_norm_resident_kernel, N, dtype, 1)
    assert min(narrow.loads) == DTYPES[dtype].itemsize < min(made[0].loads)


@pytest.mark.parametrize("width", [1000, 1001, 1004, 1008, 1016])
@pytest.mark.parametrize("first", [0, 1, 8])
def test_rows_of_any_stride_and_address_are_right(width, first):
    """A wrong promise would make a row shorter."""
    wide, w = make((6, width + 8)), make((1000,), seed=1)
    x, r, dy = wide[:, first : first + 1000], make((6, 1000), seed=2), make((6, 1000), seed=3)
    y, mean, rstd = layer_norm_forward(x, w, w, 1e-5)
    want = reference.layer_norm(x, w, w, 1e-5)
    assert np.allclose(reference.float64(y), want.y, rtol=2e-3, atol=2e-3)
    dx, dw, _ = layer_norm_backward(dy, x, w, mean, rstd, dtotal=r)
    exact = reference.layer_norm_vjp(dy, x, w, 1e-5)
    assert np.allclose(reference.float64(dx), exact.dx + reference.float64(r), rtol=2e-3, atol=2e-3)
    assert np.allclose(reference.float64(dw), exact.dw, rtol=2e-3, atol=1e-2)
    total, y, _ = add_rms_norm_forward(r, x, w, 1e-5)
    assert np.allclose(
        reference.float64(y), reference.rms_norm(total, w, 1e-5).y, rtol=2e-3, atol=2e-3
    )


def test_rows_of_whole_vectors_take_the_launches_of_aligned_rows():
    """8 columns of 2 bytes, or 4 of 4 bytes in short rows, are a vector."""

    def chosen(N, dtype, **facts):
        x = torch.empty((400, 1), dtype=dtype, device=DEVICE).expand(400, N)
        return (
            choice.choose_forward(x, None, centred=True, tuned=H100),
            choice.choose_backward(x, centred=True, tuned=H100),
        )

    half, single = torch.float16, torch.float32
    assert chosen(1000, half) == chosen(1008, half) == ("resident", "persistent")
    assert chosen(1004, half) == ("two tiles", "persistent")
    assert chosen(500, single) == chosen(512, single) and chosen(1004, single)[0] == "two tiles"
    assert chosen(8200, half)[1] == "split" and chosen(8204, half)[1] == "columns"
    assert chosen(8208, single)[1] == "split" and chosen(8204, single)[1] == "columns"
    assert chosen(40008, half)[0] == "split" and chosen(40004, half)[0] == "few rows"
    assert tables.eviction_policy(1000, half) == tables.eviction_policy(500, single) != ""
    assert tables.eviction_policy(1000) == tables.eviction_policy(1004, half) == ""
