"""The fixed launch tables: no register spills in what they launch, for three generations of GPUs, by the real compiler."""

from __future__ import annotations

import pytest

import course_lib
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels import launch_table
from course_lib.kernels.layer_norm_backward import layer_norm_backward_persistent_kernel
from course_lib.kernels.rms_norm_backward import rms_norm_backward_persistent_kernel
from course_lib.kernels.split_row import split_row_forward_kernel
from course_lib.kernels.split_row_backward import split_row_backward_kernel

pytestmark = [pytest.mark.slow, pytest.mark.skipif(course_lib.MODE != "cpu", reason="the tables are checked where nothing else compiles")]
# a table line, by a row length it serves; multiples of 16 and others are launched differently
LENGTHS = [128, 256, 512, 1024, 2048, 4096, 5120, 8192, 100, 1000, 2000 + 1, 4095, 8191]
ARCHES = ["sm_80", "sm_90", "sm_100"]


def persistent(kind: str, N: int, dtype: str, arch: str):
    launch = launch_table.persistent(N)
    x, sums = Pointer(dtype), Pointer("fp32")
    strides = [N, 1, N, 1, N, 1000, N]
    constexprs = {"HAS_W": True, "FULL": launch.block == N, "ROWS": launch.rows, "BLOCK": launch.block, "STAGES": launch.stages}
    if kind == "layer_norm":
        kernel, arguments = layer_norm_backward_persistent_kernel, [x, x, x, sums, sums, x, sums, sums]
    else:
        kernel, arguments = rms_norm_backward_persistent_kernel, [x, x, x, sums, x, sums]
    return compile_report(kernel, [*arguments, *strides], constexprs, num_warps=launch.num_warps, arch=arch, disassemble=False)


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("N", LENGTHS)
def test_the_persistent_backward_does_not_spill(N, dtype, kind):
    for arch in ARCHES if N in (1024, 4096, 8192) else ["sm_90"]:
        report = persistent(kind, N, dtype, arch)
        assert report.spill_bytes == 0, f"{arch}: {report.spill_bytes} bytes at {report.registers} registers"


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("centred", [True, False])
def test_the_split_row_kernel_does_not_spill(centred, dtype):
    for N, arch in [(65536, "sm_80"), (65536, "sm_90"), (65536, "sm_100"), (262144, "sm_90"), (100001, "sm_90")]:
        launch = launch_table.split(N)
        constexprs = {"CENTRED": centred, "HAS_W": True, "HAS_B": centred, "CHUNKS": launch.chunks, "CHUNKS_2": 64, "BLOCK": launch.block}
        x, sums = Pointer(dtype), Pointer("fp32")
        arguments = [x, x, x, x, sums, sums, sums, Pointer("int32"), N, 1, N, 16, N, 1e-5]
        report = compile_report(split_row_forward_kernel, arguments, constexprs, num_warps=launch.num_warps, arch=arch, disassemble=False)
        assert report.spill_bytes == 0, f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("centred", [True, False])
def test_the_split_row_backward_does_not_spill(centred, dtype):
    for N, arch in [(16384, "sm_80"), (16384, "sm_90"), (16384, "sm_100"), (262144, "sm_90"), (100001, "sm_90")]:
        launch = launch_table.split_backward(N, centred, 2 if dtype == "fp16" else 4)
        constexprs = {"CENTRED": centred, "HAS_W": True, "CHUNKS": launch.chunks, "CHUNKS_2": 64, "BLOCK": launch.block}
        x, sums = Pointer(dtype), Pointer("fp32")
        arguments = [x, x, x, sums, sums, x, sums, sums, sums, Pointer("int32"), N, 1, N, 1, N, 1000, N, 132]
        report = compile_report(split_row_backward_kernel, arguments, constexprs, num_warps=launch.num_warps, arch=arch, disassemble=False)
        assert report.spill_bytes == 0, f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"
