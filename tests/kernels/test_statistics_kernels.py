"""The statistics kernels against float64, on awkward shapes, strides, dtypes and means, and against
their error bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import row_statistics as bench
from course_lib.bench.measurement import Measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.launch import tables
from course_lib.kernels.row_statistics import (
    ALGORITHMS,
    KERNELS,
    resident_kernel,
    row_statistics,
    streamed_launch,
    welford_kernel,
)
from course_lib.lessons.lesson05 import figures as lesson05
from course_lib.norms import reference, statistics

DEVICE = course_lib.DEVICE
U = 2.0**-24
SHAPES = [(1, 1), (3, 2), (5, 17), (2, 127), (7, 129), (2, 1000), (2, 2500)]
ACCURATE = [name for name in ALGORITHMS if name != "one_pass"]


def make(shape, dtype=torch.float32, mean=3.0, std=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (mean + std * torch.randn(shape, generator=generator)).to(dtype).to(DEVICE)


def assert_close(x, mean, var, one_pass=False):
    """The terms that the grader allows: of the mean, of M2 built on a moving mean, and of E[x^2]
    for one-pass."""
    x = reference.float64(x)
    size, true = np.abs(x).mean(axis=1), x.var(axis=1)
    terms = true + size * np.sqrt(true) + 128 * U * size**2 + one_pass * (x**2).mean(axis=1)
    assert mean.dtype == var.dtype == torch.float32 and mean.shape == var.shape == (len(x),)
    assert (np.abs(reference.float64(mean) - x.mean(axis=1)) <= 32 * U * size + 1e-45).all()
    assert (np.abs(reference.float64(var) - true) <= 32 * U * terms + 1e-45).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_mean_and_variance_are_those_of_float64(shape, dtype, algorithm):
    x = make(shape, dtype)
    assert_close(x, *row_statistics(x, algorithm), one_pass=algorithm == "one_pass")


@pytest.mark.parametrize("block", [1, 16, 64, 256])
@pytest.mark.parametrize("algorithm", list(KERNELS))
def test_any_block_gives_the_same_statistics(algorithm, block):
    x = make((2, 100), mean=-2.0)
    assert_close(x, *row_statistics(x, algorithm, block=block), one_pass=algorithm == "one_pass")


@settings(deadline=None, max_examples=25)
@given(
    algorithm=st.sampled_from(ACCURATE), M=st.integers(1, 4), N=st.integers(1, 90),
    block=st.sampled_from([4, 16, 128]),
    ratio=st.sampled_from([0.0, 1.0, 1e2, 1e4]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_row_far_from_zero_keeps_its_digits(algorithm, M, N, block, ratio, seed):
    x = make((M, N), mean=ratio, seed=seed)
    # its first element may lie far out: kappa^2 of x - x[0] is N at most
    if algorithm == "shifted":
        _, var = row_statistics(x, algorithm, block=block)
        exact = reference.float64(x)
        terms = exact.var(axis=1) + ((exact - exact[:, :1]) ** 2).mean(axis=1)
        assert (np.abs(reference.float64(var) - exact.var(axis=1)) <= 32 * U * terms).all()
    else:
        assert_close(
            x, *row_statistics(x, algorithm, block=None if algorithm == "resident" else block)
        )


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("algorithm", list(KERNELS))
def test_no_error_passes_its_bound(algorithm, ratio):
    N, block = 1000, 128
    x = make((6, N), mean=ratio)
    exact = reference.float64(x)
    kappa = statistics.condition_number(
        exact, exact[:, 0] if algorithm == "shifted" else 0.0 * exact[:, 0]
    ).max()
    steps, levels = -(-N // block), 7
    if algorithm == "welford":
        limit = statistics.bound("chan", block * steps, kappa, U, block=steps)
    else:
        limit = statistics.bound(algorithm, steps + levels, kappa, U, "sequential")
    var = reference.float64(row_statistics(x, algorithm, block=block)[1])
    assert (np.abs(var / exact.var(axis=1) - 1) <= limit).all()


def test_one_pass_cancels_and_the_others_do_not():
    x = make((16, 512), mean=1e4)
    exact = reference.float64(x).var(axis=1)
    off = {
        name: np.abs(reference.float64(row_statistics(x, name)[1]) / exact - 1).max()
        for name in ALGORITHMS
    }
    assert off["one_pass"] > 1 and max(off[name] for name in ACCURATE) < 1e-2
    assert off["two_pass"] < 1e-4 and off["resident"] < 1e-4 and off["shifted"] < 1e-4


@pytest.mark.parametrize("algorithm", ACCURATE)
@pytest.mark.parametrize("value", [0.0, 123.456, -1e4])
def test_a_constant_row_has_next_to_no_variance(algorithm, value):
    mean, var = row_statistics(
        torch.full((2, 77), value, device=DEVICE),
        algorithm,
        block=None if algorithm == "resident" else 16,
    )
    assert (
        (mean - value).abs().max() <= 1e-6 * abs(value)
        and (var >= 0).all()
        and var.max() <= (1e-6 * value) ** 2
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("layout", ["every other column", "transposed", "sliced"])
def test_any_strides(layout, algorithm):
    wide = make((20, 70), mean=2.0)
    x = {
        "every other column": wide[:5, ::2],
        "transposed": wide.t()[:9],
        "sliced": wide[3:9, 5:42],
    }[layout]
    assert_close(x, *row_statistics(x, algorithm), one_pass=algorithm == "one_pass")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_row_offsets_are_64_bit(algorithm):
    # only the touched pages take memory
    storage = torch.empty(2**31 + 64, dtype=torch.float16, device=DEVICE)
    x = storage.as_strided((3, 17), (2**30, 1))
    x.copy_(make((3, 17), torch.float16))
    assert_close(x, *row_statistics(x, algorithm), one_pass=algorithm == "one_pass")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_bad_row_stays_alone(algorithm):
    x = make((4, 19))
    x[1, 3], x[2, 5] = float("nan"), float("inf")
    mean, var = row_statistics(x, algorithm, block=None if algorithm == "resident" else 8)
    assert mean[1].isnan() and var[1].isnan() and not mean[2].isfinite() and var[2].isnan()
    assert mean[[0, 3]].isfinite().all() and var[[0, 3]].isfinite().all()


def test_arguments_that_make_no_sense_are_refused():
    x = make((2, 8))
    with pytest.raises(ValueError, match="it can be one_pass, shifted"):
        row_statistics(x, "naive")
    with pytest.raises(ValueError, match="power of two"):
        row_statistics(x, "welford", block=48)
    with pytest.raises(ValueError, match="resident row has 1 to"):
        row_statistics(torch.zeros(1, 40000, device=DEVICE), "resident")
    assert row_statistics(torch.empty((0, 8), device=DEVICE), "welford")[0].shape == (0,)


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_no_kernel_spills_at_the_launches_that_are_timed(dtype):
    pointers = [Pointer(dtype), Pointer("fp32"), Pointer("fp32")]
    for kernel in KERNELS.values():
        _, block, num_warps = streamed_launch(262144)
        report = compile_report(
            kernel,
            [*pointers, 262144, 1, 262144],
            {"BLOCK": block},
            num_warps=num_warps,
            disassemble=False,
        )
        assert report.spill_bytes == 0
    for N in (64, 1024, bench.RESIDENT_COLUMNS):
        rows, block, num_warps = tables.resident(N)
        held = compile_report(
            resident_kernel,
            [*pointers, N, 1, 4096, N],
            {"ROWS": rows, "BLOCK": block},
            num_warps=num_warps,
            disassemble=False,
        )
        merged = compile_report(
            welford_kernel,
            [*pointers, N, 1, N],
            {"BLOCK": block},
            num_warps=num_warps,
            disassemble=False,
        )
        assert held.spill_bytes == merged.spill_bytes == 0


def test_every_provider_of_the_bench_is_right_and_has_a_count_of_sweeps():
    x = make((4, 300), mean=1.0)
    calls = bench.providers(300)
    assert calls.keys() == bench.SWEEPS.keys()
    for call in calls.values():
        assert_close(x, *call(x))
    assert bench.providers(2 * bench.RESIDENT_COLUMNS).keys() == bench.SWEEPS.keys() - {
        "resident",
        "resident_welford",
    }


@pytest.mark.skipif(course_lib.MODE == "gpu", reason="there it measures")
def test_without_a_gpu_the_bench_says_so():
    with pytest.raises(CourseError, match="needs a GPU"):
        bench.measure()
    latest = bench.latest()
    assert latest is None or (latest.kind == bench.KIND and not latest.live)


def test_the_figure_of_the_lesson_says_what_the_rows_say():
    over = {
        "one_pass": 1.0,
        "two_pass": 1.9,
        "welford": 1.1,
        "resident": 1.0,
        "resident_welford": 1.4,
        "torch": 1.2,
        "shifted": 1.0,
    }
    rows = [
        {"provider": name, "dtype": dtype, "N": N, "over_floor": value * factor}
        for name, value in over.items()
        for dtype, factor in (("fp32", 1), ("fp16", 2))
        for N in (1024, 262144)
    ]
    fp32, fp16, block = lesson05.sweep_cost(
        Measurement(bench.KIND, "a GPU", "today", {}, "a clock", rows)
    ).data["views"]
    assert (
        fp32["title"]
        == "Two sweeps cost 1.90 reads of x at 262144 columns; Welford costs 1.10 reads at 1024"
    )
    assert (
        fp16["title"]
        == "Two sweeps cost 3.80 reads of x at 262144 columns; Welford costs 2.20 reads at 1024"
    )
    assert block["title"] == "In registers two-pass costs 1.00 reads of x, Welford 1.40 reads"
    assert [line["name"] for line in fp32["panels"][0]["series"]] == list(
        lesson05.STREAMED.values()
    ) and "a GPU" in fp32["caption"]
