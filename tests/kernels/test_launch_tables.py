"""The fixed launch tables: no register spills in what they launch, for three generations of GPUs,
by the real compiler."""

from __future__ import annotations

import pytest
import torch

import course_lib
from course_lib.bench.operations import DTYPES
from course_lib.compiler import Pointer, compile_report, occupancy
from course_lib.kernels import two_tiles
from course_lib.kernels.add_layer_norm import add_layer_norm_kernel
from course_lib.kernels.launch import operands, tables
from course_lib.kernels.launch.device_classes import (
    DEVICE_CLASSES,
    H100,
    DeviceClass,
    find_line,
    has_whole_vectors,
)
from course_lib.kernels.layer_norm import layer_norm_resident_kernel
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel
from course_lib.kernels.split_row import split_row_forward_kernel
from course_lib.kernels.split_row_backward import split_row_backward_kernel
from course_lib.kernels.two_tiles_backward import two_tiles_backward_kernel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        course_lib.MODE != "cpu", reason="the tables are checked where nothing else compiles"
    ),
    pytest.mark.usefixtures("recall_compilations"),
]
# a table line, by a row length it serves; multiples of 16 and others are launched differently
LENGTHS = [128, 256, 512, 1024, 2048, 4096, 5120, 8192, 100, 1000, 2000 + 1, 4095, 8191]
ARCHES = ["sm_80", "sm_90", "sm_100"]
ARCH_OF = {"H200": "sm_90"}  # of each class for fast memory
FAST = [tuned for tuned in DEVICE_CLASSES if tuned is not H100]


def find_vector(N: int, dtype: str) -> int:
    return operands.find_vector(torch.empty((1, N), dtype=DTYPES[dtype], device="meta"), N)


def find_arch(tuned: DeviceClass) -> str:
    assert tuned.name in ARCH_OF, (
        "ARCH_OF in tests/kernels/test_launch_tables.py does not name the architecture of"
        f" {tuned.name}"
    )
    return ARCH_OF[tuned.name]


# the gradients that a call asks for: all, those of a residual stream, and none of weights
ASKED = [
    {"HAS_DTOTAL": False, "HAS_DW": True},
    {"HAS_DTOTAL": True, "HAS_DW": True},
    {"HAS_DTOTAL": True, "HAS_DW": False},
]


def persistent(
    kind: str, N: int, dtype: str, arch: str, tuned: DeviceClass = H100, asked: dict = ASKED[0]
):
    centred = kind == "layer_norm"
    launch = tables.persistent(N, DTYPES[dtype], tuned=tuned, centred=centred)
    line = find_line(tuned.persistent, N, DTYPES[dtype], centred)
    x, sums = Pointer(dtype), Pointer("fp32")
    strides = [N, 1, N, 1, N, 1000, N]
    constexprs = {
        "HAS_W": True,
        "FULL": launch.block == N,
        "ROWS": launch.rows,
        "BLOCK": launch.block,
        "STAGES": launch.stages,
    }
    constexprs |= {
        "DEPENDENT": arch >= "sm_90",
        "EVICTION_POLICY": tables.eviction_policy(N, DTYPES[dtype]),
        "VECTOR": find_vector(N, dtype),
    }
    constexprs |= {
        "CENTRED": centred,
        "AHEAD": find_line(tuned.ahead, N, DTYPES[dtype], centred).ahead,
    }
    constexprs |= asked | {"HAS_DB": asked["HAS_DW"] and centred}
    arguments = [x, x, x, sums, sums, x, x, sums, sums, *strides]
    limits = {"num_warps": launch.num_warps, "maxnreg": line.registers, "arch": arch}
    return compile_report(
        norm_backward_persistent_kernel, arguments, constexprs, disassemble=False, **limits
    )


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("N", LENGTHS)
def test_the_persistent_backward_does_not_spill(N, dtype, kind):
    for arch in ARCHES if N in (1024, 4096, 8192) else ["sm_90"]:
        for asked in ASKED if arch == "sm_90" else ASKED[:1]:
            report = persistent(kind, N, dtype, arch, asked=asked)
            # a residual before rows of odd length, which no model has
            odd = asked["HAS_DTOTAL"] and not has_whole_vectors(N, DTYPES[dtype])
            assert report.spill_bytes <= (80 if odd else 0), (
                f"{arch}, {asked}: {report.spill_bytes} bytes at {report.registers} registers"
            )


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("tuned", FAST, ids=lambda tuned: tuned.name)
def test_the_persistent_backward_for_fast_memory_does_not_spill(tuned, dtype, kind):
    for N in (64, 128, 256, 512, 640, 1024, 2048):
        report = persistent(kind, N, dtype, find_arch(tuned), tuned=tuned)
        assert report.spill_bytes == 0, (
            f"{N}: {report.spill_bytes} bytes at {report.registers} registers"
        )


LONG = [
    (65536, "sm_80"), (65536, "sm_90"), (65536, "sm_100"), (262144, "sm_90"), (100001, "sm_90"),
    (40008, "sm_90"),
]  # fmt: skip
LONG_FORWARD = [*LONG, (32768, "sm_90"), (40016, "sm_90"), (49152, "sm_90"), (300000, "sm_90")]


def split_constexprs(launch: tables.SplitLaunch, arch: str) -> dict:
    chunks_2 = 1 << (launch.chunks - 1).bit_length()
    return {
        "CHUNKS": launch.chunks, "CHUNKS_2": chunks_2,
        "COPIES": tables.copies(chunks_2, launch.num_warps), "BLOCK": launch.block,
        "DEPENDENT": arch >= "sm_90",
    }  # fmt: skip


@pytest.mark.parametrize(
    "dtype, add, tuned",
    [(dtype, add, H100) for dtype in ("fp16", "bf16", "fp32") for add in (True, False)]
    + [(dtype, False, tuned) for tuned in FAST for dtype in ("fp16", "bf16")],
    ids=lambda value: value.name if isinstance(value, DeviceClass) else str(value),
)
@pytest.mark.parametrize("centred", [True, False])
def test_the_split_row_kernel_does_not_spill_and_its_programs_are_resident_at_once(
    centred, dtype, add, tuned
):
    """Four programs that leave room for three take twice as long as three: the last ones start when
    the others have ended."""
    fast = (
        [
            (N, find_arch(tuned))
            for N in (12288, 65536, 100000, 262144)
            if N > 32768 or dtype == "fp16"
        ]
        if tuned in FAST
        else []
    )
    for N, arch in fast or LONG_FORWARD:
        launch = tables.split(N, DTYPES[dtype], centred=centred, add=add, tuned=tuned)
        constexprs = {
            "CENTRED": centred,
            "HAS_W": True,
            "HAS_B": centred,
            "ADD": add,
            "FULL": launch.full,
            "VECTOR": find_vector(N, dtype),
        } | split_constexprs(launch, arch)
        x, sums, words = Pointer(dtype), Pointer("fp32"), Pointer("int64")
        arguments = [x, x, x, x, x, x, sums, sums, words, words, N, 1, N, 1, N, 1024, N, 1e-5, 32]
        report = compile_report(
            split_row_forward_kernel,
            arguments,
            constexprs,
            num_warps=launch.num_warps,
            arch=arch,
            disassemble=False,
        )
        assert report.spill_bytes == 0, (
            f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"
        )
        held = (
            occupancy(arch, report.registers, report.shared_bytes, launch.num_warps)
            // launch.num_warps
        )
        assert held >= launch.programs_per_multiprocessor, (
            f"{N}, {arch}: {report.registers} registers a thread, and {held} programs"
        )


# LayerNorm in half precision keeps three rows of x and dy, dw and db in 255 registers, and six more
# would do. A kernel that loads mean and rstd a second time fits, and is slower:
# docs/kernel-trials.md, "Backward", has the measurement.
MOST_SPILLED = {("fp16", True): 32}
# the same with the gradient of a residual; for RMSNorm only rows of odd length spill
MOST_SPILLED_WITH_RESIDUAL = {("fp16", True): 32, ("fp16", False): 32}


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("centred", [True, False])
def test_the_split_row_backward_hardly_spills(centred, dtype, asked):
    for N, arch in [(16384, "sm_80"), *LONG] + (
        [] if centred else [(10007, "sm_90"), (131071, "sm_90")]
    ):
        launch = tables.split_backward(N, DTYPES[dtype])
        constexprs = {"CENTRED": centred, "HAS_W": True} | split_constexprs(launch, arch)
        constexprs |= asked | {"HAS_DB": asked["HAS_DW"] and centred}
        constexprs["VECTOR"] = find_vector(N, dtype)
        x, sums, words = Pointer(dtype), Pointer("fp32"), Pointer("int64")
        arguments = [
            x,
            x,
            x,
            sums,
            sums,
            x,
            x,
            sums,
            sums,
            words,
            words,
            N,
            1,
            N,
            1,
            N,
            1024,
            N,
            32,
        ]
        report = compile_report(
            split_row_backward_kernel,
            arguments,
            constexprs,
            num_warps=launch.num_warps,
            arch=arch,
            disassemble=False,
        )
        most = (MOST_SPILLED_WITH_RESIDUAL if asked["HAS_DTOTAL"] else MOST_SPILLED).get(
            (dtype, centred), 0
        )
        assert report.spill_bytes <= most, (
            f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"
        )


TWO_TILES = [
    (3001, "sm_90"), (4095, "sm_90"), (4097, "sm_80"), (4097, "sm_100"), (5120, "sm_90"),
    (5120, "sm_100"), (6001, "sm_90"),
    (8191, "sm_90"), (8200, "sm_90"), (9000, "sm_90"), (12288, "sm_90"), (16383, "sm_90"),
    (20008, "sm_90"), (20480, "sm_90"), (20001, "sm_90"),
]  # fmt: skip


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("centred", [True, False])
def test_two_tiles_do_not_spill(centred, dtype, add):
    for N, arch in TWO_TILES:
        block, tail, num_warps = tables.two_tiles(N, DTYPES[dtype])
        most = find_line(H100.two_tiles, N, DTYPES[dtype]).registers
        constexprs = {
            "CENTRED": centred,
            "HAS_W": True,
            "HAS_B": centred,
            "ADD": add,
            "BLOCK": block,
            "TAIL": tail,
        }
        constexprs["EVICTION_POLICY"] = tables.eviction_policy(N, DTYPES[dtype], add=add)
        constexprs["VECTOR"] = find_vector(N, dtype)
        x, sums = Pointer(dtype), Pointer("fp32")
        w = Pointer(dtype, aligned=has_whole_vectors(N, DTYPES[dtype]))
        arguments = [x, x, x, x, w, w, sums, sums, N, 1, N, 1, N, N, 1e-5]
        limits = {"num_warps": num_warps, "maxnreg": most, "arch": arch}
        report = compile_report(
            two_tiles.choose_kernel(N, DTYPES[dtype]),
            arguments,
            constexprs,
            disassemble=False,
            **limits,
        )
        assert report.spill_bytes == 0, (
            f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"
        )


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("asked", ASKED[:2], ids=str)
def test_two_tiles_backward_do_not_spill(centred, dtype, asked):
    cases = [(2049, "sm_90"), (4097, "sm_80"), (4097, "sm_90"), (4097, "sm_100"), (6001, "sm_90")]
    if dtype != "fp32":
        cases += [(3072, "sm_90"), (5120, "sm_90"), (10240, "sm_90")]
        cases += [] if centred else [(12288, "sm_90")]
    for N, arch in cases:
        launch = tables.two_tiles_backward(N, DTYPES[dtype])
        num_warps = launch.num_warps
        constexprs = {
            "CENTRED": centred, "HAS_W": True, "BLOCK": launch.block, "TAIL": launch.tail,
            "STAGES": launch.stages,
            "DEPENDENT": arch >= "sm_90", "HAS_DB": centred, "VECTOR": find_vector(N, dtype),
        } | asked  # fmt: skip
        x, w, sums = Pointer(dtype), Pointer(dtype, aligned=False), Pointer("fp32")
        arguments = [x, x, w, sums, sums, x, x, sums, sums, N, 1, N, 1, N, 1000, N]
        report = compile_report(
            two_tiles_backward_kernel,
            arguments,
            constexprs,
            num_warps=num_warps,
            arch=arch,
            disassemble=False,
        )
        # two numbers of a thread, of the longest rows with a residual's gradient
        most = 8 if asked["HAS_DTOTAL"] and N > tables.PERSISTENT_LIMIT else 0
        assert report.spill_bytes <= most, (
            f"{N}, {arch}: {report.spill_bytes} bytes at {report.registers} registers"
        )


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize(("N", "programs"), [(8000, 3), (8192, 3), (16000, 2), (16384, 2)])
def test_a_multiprocessor_has_room_for_several_programs_with_long_rows(N, programs, dtype):
    launch = tables.resident(N, DTYPES[dtype])
    most = find_line(H100.resident, N, DTYPES[dtype], True, False).registers
    assert find_line(H100.resident, N, torch.float32, True, False).registers is None
    x, sums = Pointer(dtype), Pointer("fp32")
    constexprs = {
        "HAS_W": True,
        "HAS_B": True,
        "ROWS": launch.rows,
        "BLOCK": launch.block,
        "EVICTION_POLICY": tables.eviction_policy(N, DTYPES[dtype]),
    }
    arguments = [x, x, x, x, sums, sums, N, 1, N, 1, 1000, N, 1e-5]
    limits = {"num_warps": launch.num_warps, "maxnreg": most, "arch": "sm_90", "disassemble": False}
    report = compile_report(layer_norm_resident_kernel, arguments, constexprs, **limits)
    assert report.spill_bytes == 0
    assert (
        occupancy("sm_90", report.registers, report.shared_bytes, launch.num_warps)
        >= programs * launch.num_warps
    )


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_the_addition_before_layer_norm_does_not_spill(dtype):
    for N in (256, 1024, 4096, 8192, 16384):
        launch = tables.resident(N)
        x, sums = Pointer(dtype), Pointer("fp32")
        arguments = [x, x, x, x, x, x, sums, sums, N, 1, N, 1, N, 1000, N, 1e-5]
        constexprs = {"HAS_W": True, "HAS_B": True, "ROWS": launch.rows, "BLOCK": launch.block}
        report = compile_report(
            add_layer_norm_kernel,
            arguments,
            constexprs,
            num_warps=launch.num_warps,
            arch="sm_90",
            disassemble=False,
        )
        assert report.spill_bytes <= (8 if N == 8192 else 0), (
            f"{N}: {report.spill_bytes} bytes at {report.registers} registers"
        )
