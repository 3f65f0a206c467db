"""The reference kernels against the float64 specification, on awkward shapes, strides and
dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import course_lib
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm import add_layer_norm_forward, layer_norm_forward
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_forward
from course_lib.norms import reference

DEVICE = course_lib.DEVICE
UNIT = {torch.float32: 0.0, torch.float16: 2**-11, torch.bfloat16: 2**-8}
SHAPES = [(1, 1), (3, 2), (5, 17), (2, 127), (33, 128), (7, 129), (3, 1000), (2, 2500), (1, 8192)]


def close(actual, expected, slack, dtype):
    """Rounding of a two-pass fp32 algorithm plus one rounding to the output's dtype; `slack` is the
    sum of absolute terms."""
    actual = reference.float64(actual)
    allowed = (
        128 * 2.0**-24 * slack
        + 1.01 * UNIT[dtype] * np.abs(expected)
        + (2.0**-24 if dtype == torch.float16 else 0.0)
    )
    worst = np.max(np.abs(actual - expected) / allowed)
    assert worst <= 1.0, f"{worst:.3g} x the allowed error"


def make(shape, dtype, seed=0, mean=3.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) + mean).to(dtype).to(DEVICE)


def check_layer_norm(x, w, b, eps, algorithm):
    y, mean, rstd = layer_norm_forward(x, w, b, eps, algorithm=algorithm)
    want = reference.layer_norm(x, w, b, eps)
    scale = 1 + np.abs(want.mean) * want.rstd
    w64 = np.ones(x.shape[1]) if w is None else np.abs(reference.float64(w))
    b64 = np.zeros(x.shape[1]) if b is None else np.abs(reference.float64(b))
    assert y.dtype == x.dtype and mean.dtype == rstd.dtype == torch.float32
    close(y, want.y, scale[:, None] * w64 + b64 + np.abs(want.y), x.dtype)
    close(mean, want.mean, np.abs(reference.float64(x)).mean(axis=1) + 1e-30, torch.float32)
    close(rstd, want.rstd, scale * want.rstd, torch.float32)


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm_matches_the_specification(shape, dtype, algorithm):
    check_layer_norm(
        make(shape, dtype),
        make(shape[1], dtype, 1, 0.5),
        make(shape[1], dtype, 2, 0.0),
        1e-5,
        algorithm,
    )


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm_matches_the_specification(shape, dtype, algorithm):
    x, w = make(shape, dtype), make(shape[1], dtype, 1, 0.5)
    y, rstd = rms_norm_forward(x, w, 1e-5, algorithm=algorithm)
    want = reference.rms_norm(x, w, 1e-5)
    assert y.dtype == x.dtype and rstd.dtype == torch.float32
    close(y, want.y, np.abs(reference.float64(w)) + np.abs(want.y), x.dtype)
    close(rstd, want.rstd, want.rstd, torch.float32)


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
@pytest.mark.parametrize(
    "layout", ["every other column", "transposed", "sliced", "reversed rows by index"]
)
def test_any_strides(layout, algorithm):
    wide = make((34, 70), torch.float32, mean=2.0)
    x = {
        "every other column": wide[:, ::2],
        "transposed": wide.t(),
        "sliced": wide[3:9, 5:42],
        "reversed rows by index": wide[torch.arange(33, -1, -3)],
    }[layout]
    w, b = make(x.shape[1], torch.float32, 1), make(2 * x.shape[1], torch.float32, 2)[::2]
    check_layer_norm(x, w, b, 1e-5, algorithm)
    close(
        rms_norm_forward(x, w, 1e-5, algorithm=algorithm)[0],
        reference.rms_norm(x, w).y,
        10.0,
        torch.float32,
    )


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
def test_weight_and_bias_may_be_absent_or_of_another_dtype(algorithm):
    x = make((4, 37), torch.float16)
    w, b = make(37, torch.float32, 1), make(37, torch.bfloat16, 2)
    for weight, bias in ((None, None), (w, None), (None, b), (w, b)):
        check_layer_norm(x, weight, bias, 1e-5, algorithm)
    y, _ = rms_norm_forward(x, None, 1e-5, algorithm=algorithm)
    close(y, reference.rms_norm(x).y, 4.0, torch.float16)


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked", "split", "few rows"])
@pytest.mark.parametrize(
    ("x_dtype", "dtype"), [(torch.bfloat16, torch.float32), (torch.float32, torch.float16)]
)
def test_y_may_have_another_dtype_and_is_rounded_once(x_dtype, dtype, algorithm):
    x, w, b = make((5, 37), x_dtype), make(37, x_dtype, 1, 0.5), make(37, x_dtype, 2, 0.0)
    y, _, rstd = layer_norm_forward(x, w, b, 1e-5, dtype, algorithm=algorithm)
    want = reference.layer_norm(x, w, b, 1e-5)
    slack = np.abs(reference.float64(w)) * (1 + np.abs(want.mean) * want.rstd)[:, None] + np.abs(
        want.y
    )
    assert y.dtype == dtype and rstd.dtype == torch.float32
    close(y, want.y, slack + np.abs(reference.float64(b)), dtype)
    y, _ = rms_norm_forward(x, w, 1e-5, dtype, algorithm=algorithm)
    want = reference.rms_norm(x, w, 1e-5)
    assert y.dtype == dtype
    close(y, want.y, np.abs(reference.float64(w)) + np.abs(want.y), dtype)


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked", "split", "few rows"])
@pytest.mark.parametrize("offset", [1.0, -0.3])
def test_an_offset_is_added_to_w_in_fp32(offset, algorithm):
    """Equal bits to a w in fp32 that has it already."""
    x, b = make((5, 37), torch.float16), make(37, torch.float16, 2)
    w = 0.1 * make(37, torch.float16, 1)
    whole = w.float() + offset
    got = layer_norm_forward(x, w, b, 1e-5, None, offset, algorithm=algorithm)[0]
    assert torch.equal(got, layer_norm_forward(x, whole, b, 1e-5, algorithm=algorithm)[0])
    got = rms_norm_forward(x, w, 1e-5, None, offset, algorithm=algorithm)[0]
    assert torch.equal(got, rms_norm_forward(x, whole, 1e-5, algorithm=algorithm)[0])
    assert torch.equal(
        rms_norm_forward(x, None, 1e-5, None, offset, algorithm=algorithm)[0],
        rms_norm_forward(x, None, 1e-5, algorithm=algorithm)[0],
    )


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
def test_a_mean_far_from_zero_loses_nothing(algorithm):
    check_layer_norm(make((3, 1000), torch.float32, mean=1e4), None, None, 1e-5, algorithm)


# 0 has the bits of the integer 0, 2.0 a single bit; 1.0 and 3.0 are integers as well
@pytest.mark.parametrize("eps", [0.0, -0.0, 1e-12, 0.1, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
def test_eps_is_exact_in_fp64(eps, algorithm):
    """In fp32 0.1 is off by 1.5e-8 of itself and 1e-12 by 4e-9."""
    x = 1e-9 * torch.randn((3, 37), generator=torch.Generator().manual_seed(0)).double().to(DEVICE)
    nothing = torch.zeros_like(x)
    total, _, added = add_rms_norm_forward(x, nothing, None, eps)
    *_, added_layer = add_layer_norm_forward(x, nothing, None, None, eps)
    assert torch.equal(total, x)
    for rstds, squares in (
        ((rms_norm_forward(x, None, eps, algorithm=algorithm)[1], added), x * x),
        (
            (layer_norm_forward(x, None, None, eps, algorithm=algorithm)[2], added_layer),
            (x - x.mean(1, keepdim=True)) ** 2,
        ),
    ):
        want = 1 / (squares.mean(1) + eps).sqrt()
        for rstd in rstds:
            assert rstd.dtype == torch.float64
            assert ((rstd - want).abs() / want).max() <= 1e-14


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
def test_row_offsets_are_64_bit(algorithm):
    """Three rows 2^30 elements apart: row 2 starts at 2^31, which a 32-bit product turns
    negative."""
    # only the touched pages take memory
    storage = torch.empty(2**31 + 64, dtype=torch.float16, device=DEVICE)
    x = storage.as_strided((3, 17), (2**30, 1))
    x.copy_(make((3, 17), torch.float16))
    check_layer_norm(x, None, None, 1e-5, algorithm)
    close(
        rms_norm_forward(x, None, 1e-5, algorithm=algorithm)[0],
        reference.rms_norm(x).y,
        8.0,
        torch.float16,
    )


@pytest.mark.parametrize("algorithm", ["resident", "two tiles", "blocked"])
def test_a_bad_row_stays_alone(algorithm):
    x = make((4, 19), torch.float32)
    x[1, 3], x[2, 5] = float("nan"), float("inf")
    y, _, _ = layer_norm_forward(x, None, None, 1e-5, algorithm=algorithm)
    z, _ = rms_norm_forward(x, None, 1e-5, algorithm=algorithm)
    for out in (y, z):
        assert out[1].isnan().all() and out[2].isnan().any()
        assert out[[0, 3]].isfinite().all()


def test_no_rows_is_no_work():
    x = torch.empty((0, 8), device=DEVICE)
    assert layer_norm_forward(x, None, None, 1e-5)[0].shape == (0, 8)
    assert rms_norm_forward(x, None, 1e-5)[0].shape == (0, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (33, 128), (2, 1000)])
def test_fused_addition_gives_the_bits_of_the_two_steps(shape, dtype):
    x, residual, w = make(shape, dtype), make(shape, dtype, 1, -1.0), make(shape[1], dtype, 2)
    total, y, rstd = add_rms_norm_forward(x, residual, w, 1e-5)
    unfused = x + residual
    want, want_rstd = rms_norm_forward(unfused, w, 1e-5)
    assert torch.equal(total, unfused) and torch.equal(y, want) and torch.equal(rstd, want_rstd)
    b = make(shape[1], dtype, 3)
    total, *fused = add_layer_norm_forward(x, residual, w, b, 1e-5)
    assert torch.equal(total, unfused)
    assert all(
        torch.equal(one, two)
        for one, two in zip(fused, layer_norm_forward(unfused, w, b, 1e-5), strict=True)
    )


def test_what_cannot_be_launched_is_refused_in_words():
    x = torch.empty((1, tables.RESIDENT_LIMIT + 1), device=DEVICE)
    with pytest.raises(ValueError, match="use the blocked kernel"):
        layer_norm_forward(x, None, None, 1e-5, algorithm="resident")
    with pytest.raises(ValueError, match="it can be"):
        rms_norm_forward(x, None, 1e-5, algorithm="welford")
    with pytest.raises(ValueError, match="must be the same"):
        add_rms_norm_forward(torch.empty((2, 3)), torch.empty((3, 2)), None, 1e-5)


def test_the_launch_table_covers_every_length():
    for N in [1, 2, 127, 128, 129, 1000, 4097, 20000, tables.RESIDENT_LIMIT]:
        launch = tables.resident(N)
        assert launch.block >= N and launch.block < 2 * N and launch.block & (launch.block - 1) == 0
        assert launch.rows * launch.block <= tables.RESIDENT_LIMIT
