"""The backward reference kernels against the float64 specification: every design, awkward shapes,
strides and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import course_lib
from course_lib.interpreter import schedule
from course_lib.kernels import layer_norm_backward, rms_norm_backward
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import choice, device, tables
from course_lib.kernels.launch.device_classes import H100, H200, find_line
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.rms_norm import rms_norm_forward
from course_lib.norms import reference

DEVICE = course_lib.DEVICE
UNIT = {torch.float64: 0.0, torch.float32: 0.0, torch.float16: 2**-11, torch.bfloat16: 2**-8}
SHAPES = [(1, 1), (3, 2), (5, 17), (33, 128), (70, 129), (9, 1000), (2, 2500)]
LAYER_NORM = [a for a in layer_norm_backward.ALGORITHMS if a != "auto"]
RMS_NORM = [a for a in rms_norm_backward.ALGORITHMS if a != "auto"]


def close(actual, expected, terms, dtype):
    """128 units of fp32 in the sum of absolute terms, plus one rounding to the output's dtype."""
    actual = reference.float64(actual)
    allowed = (
        128 * 2.0**-24 * terms
        + 1.01 * UNIT[dtype] * np.abs(expected)
        + (2.0**-24 if dtype == torch.float16 else 1e-30)
    )
    worst = np.max(np.abs(actual - expected) / allowed)
    assert worst <= 1.0, f"{worst:.3g} x the allowed error"


def make(shape, dtype=torch.float32, seed=0, mean=0.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) + mean).to(dtype).to(DEVICE)


def check_layer_norm(dy, x, w, algorithm, eps=1e-5, dtotal=None):
    _, mean, rstd = layer_norm_forward(x, w, None, eps)
    dx, dw, db = layer_norm_backward.layer_norm_backward(
        dy, x, w, mean, rstd, dtotal=dtotal, algorithm=algorithm
    )
    want = reference.layer_norm_vjp(dy, x, w, eps)
    x64, dy64 = reference.float64(x), np.abs(reference.float64(dy))
    exact = reference.layer_norm(x, None, None, eps)
    scale = 1 + np.abs(exact.mean) * exact.rstd  # the mean's rounding, in units of xhat
    xhat = np.abs(exact.y) + scale[:, None]
    wdy = dy64 * (1.0 if w is None else np.abs(reference.float64(w)))
    terms = (
        exact.rstd[:, None]
        * (wdy + xhat * (xhat * wdy).mean(axis=1, keepdims=True) + wdy.mean(axis=1, keepdims=True))
        * scale[:, None]
    )
    w_dtype = x.dtype if w is None else w.dtype
    assert (
        (dx.dtype, dx.shape) == (x.dtype, x.shape)
        and dw.dtype == db.dtype == w_dtype
        and dw.shape == db.shape == (x64.shape[1],)
    )
    further = 0.0 if dtotal is None else reference.float64(dtotal)
    close(dx, want.dx + further, terms + np.abs(further), x.dtype)
    close(dw, want.dw, (dy64 * xhat).sum(axis=0), w_dtype)
    close(db, want.db, dy64.sum(axis=0), w_dtype)


def check_rms_norm(dy, x, w, algorithm, eps=1e-5, dtotal=None):
    _, rstd = rms_norm_forward(x, w, eps)
    dx, dw = rms_norm_backward.rms_norm_backward(dy, x, w, rstd, dtotal=dtotal, algorithm=algorithm)
    want = reference.rms_norm_vjp(dy, x, w, eps)
    exact = reference.rms_norm(x, None, eps)
    xhat, dy64 = np.abs(exact.y), np.abs(reference.float64(dy))
    wdy = dy64 * (1.0 if w is None else np.abs(reference.float64(w)))
    terms = exact.rstd[:, None] * (wdy + xhat * (xhat * wdy).mean(axis=1, keepdims=True))
    w_dtype = x.dtype if w is None else w.dtype
    assert (dx.dtype, dx.shape, dw.dtype) == (x.dtype, x.shape, w_dtype)
    further = 0.0 if dtotal is None else reference.float64(dtotal)
    close(dx, want.dx + further, terms + np.abs(further), x.dtype)
    close(dw, want.dw, (dy64 * xhat).sum(axis=0), w_dtype)


@pytest.mark.parametrize("algorithm", LAYER_NORM)
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm_matches_the_specification(shape, algorithm):
    check_layer_norm(
        make(shape, seed=1), make(shape, mean=3.0), make(shape[1], seed=2, mean=0.5), algorithm
    )


@pytest.mark.parametrize("algorithm", RMS_NORM)
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm_matches_the_specification(shape, algorithm):
    check_rms_norm(
        make(shape, seed=1), make(shape, mean=3.0), make(shape[1], seed=2, mean=0.5), algorithm
    )


@pytest.mark.parametrize("algorithm", LAYER_NORM)
def test_an_offset_is_added_to_w_before_anything_else(algorithm):
    """Equal bits to a w that has it already; a design of the lessons refuses it."""
    x, dy, w = make((5, 37), mean=1.0), make((5, 37), seed=1), make(37, seed=2)
    for run, known, statistics in (
        (layer_norm_backward.layer_norm_backward, LAYER_NORM,
            layer_norm_forward(x, w, None, 1e-5)[1:]),
        (rms_norm_backward.rms_norm_backward, RMS_NORM, rms_norm_forward(x, w, 1e-5)[1:]),
    ):  # fmt: skip
        if algorithm not in known:
            continue
        if algorithm in ("two-stage", "locked"):
            with pytest.raises(ValueError, match="no offset"):
                run(dy, x, w, *statistics, w_offset=1.0, algorithm=algorithm)
            continue
        got = run(dy, x, w, *statistics, w_offset=1.0, algorithm=algorithm)
        want = run(dy, x, w + 1, *statistics, algorithm=algorithm)
        assert all(torch.equal(one, two) for one, two in zip(got, want, strict=True))


@pytest.mark.parametrize("algorithm", LAYER_NORM)
@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.float16, torch.float16),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_dtypes(dtypes, algorithm):
    x_dtype, w_dtype = dtypes
    x, dy, w = make((20, 70), x_dtype, mean=2.0), make((20, 70), x_dtype, 1), make(70, w_dtype, 2)
    if algorithm == "split" and x_dtype == torch.float64:
        with pytest.raises(ValueError, match="fp64; use"):
            check_layer_norm(dy, x, w, algorithm)
        return
    check_layer_norm(dy, x, w, algorithm)
    check_layer_norm(dy, x, None, algorithm)
    if algorithm in RMS_NORM:
        check_rms_norm(dy, x, w, algorithm)
        check_rms_norm(dy, x, None, algorithm)


@pytest.mark.parametrize("algorithm", LAYER_NORM)
@pytest.mark.parametrize("layout", ["expanded dy", "every other column", "transposed", "sliced"])
def test_dy_and_x_have_strides_of_their_own(layout, algorithm):
    wide = make((70, 70), mean=2.0)
    dy, x = {
        "expanded dy": (make((1,)).expand(20, 37), wide[:20, :37]),
        "every other column": (wide[:20, 1::2], wide[:20, ::2]),
        "transposed": (wide.t(), make((70, 70), seed=3, mean=1.0)),
        "sliced": (make((20, 37), seed=1), wide[5:25, 9:46]),
    }[layout]
    w = make(x.shape[1], seed=2, mean=0.5)
    check_layer_norm(dy, x, w, algorithm)
    if algorithm in RMS_NORM:
        check_rms_norm(dy, x, w, algorithm)


OF_MODELS = ["persistent", "two tiles", "split", "columns"]  # those that "auto" takes


@pytest.mark.parametrize("algorithm", OF_MODELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (33, 128), (9, 300)])
def test_the_gradient_of_a_residual_is_added_before_dx_is_rounded(shape, dtype, algorithm):
    dy, x, w = make(shape, dtype, 1), make(shape, dtype, mean=3.0), make(shape[1], dtype, 2)
    dtotal = make((shape[1], shape[0]), dtype, 3).t()
    check_layer_norm(dy, x, w, algorithm, dtotal=dtotal)
    check_rms_norm(dy, x, w, algorithm, dtotal=dtotal)


@pytest.mark.parametrize("algorithm", OF_MODELS)
def test_gradients_that_are_not_needed_are_left_out_and_change_no_bits(algorithm):
    dy, x, w = make((20, 70), seed=1), make((20, 70), mean=3.0), make(70, seed=2)
    _, mean, rstd = layer_norm_forward(x, w, None, 1e-5)
    for needs_dw, needs_db in ((True, False), (False, True), (False, False)):
        needs = {"needs_dw": needs_dw, "needs_db": needs_db}
        whole, some = (
            layer_norm_backward.layer_norm_backward(
                dy, x, w, mean, rstd, dtotal=x, algorithm=algorithm, **options
            )
            for options in ({}, needs)
        )
        assert torch.equal(some[0], whole[0])
        for got, want, needed in zip(some[1:], whole[1:], needs.values(), strict=True):
            assert torch.equal(got, want) if needed else got is None
    whole, some = (
        rms_norm_backward.rms_norm_backward(dy, x, w, rstd, algorithm=algorithm, needs_dw=needs_dw)
        for needs_dw in (True, False)
    )
    assert torch.equal(some[0], whole[0]) and some[1] is None


def test_the_lessons_designs_refuse_what_they_do_not_compute():
    x, row = make((3, 8)), make(3)
    for options in ({"dtotal": x}, {"needs_dw": False}, {"needs_db": False}):
        for algorithm in ("two-stage", "locked"):
            with pytest.raises(ValueError, match="computes dx, dw and db, and adds no dtotal"):
                layer_norm_backward.layer_norm_backward(
                    x, x, None, row, row, algorithm=algorithm, **options
                )


@pytest.mark.parametrize("algorithm", LAYER_NORM)
def test_a_bad_row_spoils_no_other_rows_dx(algorithm):
    x, dy = make((40, 19), mean=1.0), make((40, 19), seed=1)
    x[1, 3], dy[7, 2] = float("nan"), float("inf")
    _, mean, rstd = layer_norm_forward(x, None, None, 1e-5)
    dx, dw, _ = layer_norm_backward.layer_norm_backward(
        dy, x, None, mean, rstd, algorithm=algorithm
    )
    good = [r for r in range(40) if r not in (1, 7)]
    assert dx[good].isfinite().all() and not dx[1].isfinite().any() and dw.isnan().any()


@pytest.mark.parametrize("algorithm", ["persistent", "two tiles", "two-stage", "columns"])
def test_lock_free_designs_give_the_same_bits_every_time(algorithm):
    x = make((70, 33), torch.float16, mean=1.0)
    dy = make((70, 33), torch.float16, 1)
    w = make(33, torch.float16, 2)
    _, mean, rstd = layer_norm_forward(x, w, None, 1e-5)
    first, again = (
        layer_norm_backward.layer_norm_backward(dy, x, w, mean, rstd, algorithm=algorithm)
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize(
    "check, N, dtype, place",
    [
        (check_layer_norm, 4096, torch.float16, "store"),
        (check_layer_norm, 1536, torch.float32, "last"),
        (check_rms_norm, 1536, torch.float16, "store"),
        (check_rms_norm, 1024, torch.float16, "last"),
    ],
)
def test_mean_and_rstd_one_tile_ahead_are_those_of_the_tile(check, N, dtype, place, monkeypatch):
    """Each row has a mean and rstd of its own, there are more tiles than programs, and the last
    tile has one row."""
    assert find_line(H100.ahead, N, dtype, check is check_layer_norm).ahead == place
    monkeypatch.setattr(device, "count_multiprocessors", lambda _: 3)
    x, dy, w = make((29, N), dtype, mean=3.0), make((29, N), dtype, 1), make(N, dtype, 2)
    check(dy, x * torch.linspace(1, 5, 29, device=DEVICE, dtype=dtype)[:, None], w, "persistent")


def test_no_rows_and_fewer_rows_than_buffers():
    empty, statistics = torch.empty((0, 8), device=DEVICE), torch.empty(0, device=DEVICE)
    dx, dw, db = layer_norm_backward.layer_norm_backward(empty, empty, None, statistics, statistics)
    assert dx.shape == (0, 8) and not dw.any() and not db.any()
    dx, dw = rms_norm_backward.rms_norm_backward(empty, empty, None, statistics)
    assert dx.shape == (0, 8) and not dw.any()
    assert tables.lock_group(8) > 3
    check_layer_norm(make((3, 8), seed=1), make((3, 8)), None, "locked")


def test_what_cannot_be_done_is_refused_in_words():
    x = torch.empty((1, tables.PERSISTENT_LIMIT + 1), device=DEVICE)
    row = torch.empty(1, device=DEVICE)
    with pytest.raises(ValueError, match="use algorithm 'columns'"):
        layer_norm_backward.layer_norm_backward(x, x, None, row, row, algorithm="persistent")
    with pytest.raises(ValueError, match="it can be 'auto', 'persistent'"):
        rms_norm_backward.rms_norm_backward(x, x, None, row, algorithm="locked")


@pytest.mark.parametrize("P", [0, 1, 63, 64, 65, 130])
def test_column_sums(P):
    first, second = make((P, 37)), make((P, 37), seed=1)
    a, b = (
        torch.empty(37, dtype=dtype, device=first.device)
        for dtype in (torch.float32, torch.float16)
    )
    column_sums(first, second, a, b)
    close(
        a,
        reference.float64(first).sum(axis=0),
        np.abs(reference.float64(first)).sum(axis=0) + 1e-30,
        torch.float32,
    )
    close(
        b,
        reference.float64(second).sum(axis=0),
        np.abs(reference.float64(second)).sum(axis=0) + 1e-30,
        torch.float16,
    )
    alone = torch.empty_like(a)
    column_sums(first, None, alone, None)
    assert torch.equal(alone, a)
    column_sums(None, second, None, alone)
    close(
        alone,
        reference.float64(second).sum(axis=0),
        np.abs(reference.float64(second)).sum(axis=0) + 1e-30,
        torch.float32,
    )


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="interleaves programs in the interpreter")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_locked_kernel_has_no_race_and_no_deadlock_in_any_order_tried(seed):
    M, N, group = 6, 8, 2
    x, dy = make((M, N), mean=1.0), make((M, N), seed=1)
    _, mean, rstd = layer_norm_forward(x, None, None, 1e-5)
    dx = torch.empty_like(x)
    dw, db = torch.full((group, N), float("nan")), torch.full((group, N), float("nan"))
    lock = torch.zeros(2 * group, dtype=torch.int32)
    outcome = schedule.run(
        layer_norm_backward.layer_norm_backward_locked_kernel, (M,), dy, x, x, mean, rstd, dx, dw,
        db, lock,
        N, 1, N, 1, N, N, seed=seed, HAS_W=False, GROUP=group, BLOCK=8,
    )  # fmt: skip
    assert outcome.complete and not outcome.findings, outcome.findings
    want = reference.layer_norm_vjp(dy, x)
    assert np.allclose(dw.sum(0), want.dw, atol=1e-5) and np.allclose(db.sum(0), want.db, atol=1e-5)


def test_what_is_chosen_follows_the_row_length(monkeypatch):
    def chosen(N, dtype=torch.float16, M=40, centred=False):
        x = torch.empty(M, 1, dtype=dtype, device=DEVICE).expand(M, N)
        return choice.choose_backward(x, centred=centred, tuned=choice.find_device_class(x))

    monkeypatch.setattr(device, "find_bandwidth", lambda _: H100.bandwidth)

    # idle lanes cost where every element has a load of its own, and a quarter of them or more have
    # nothing to do
    assert [chosen(N) for N in (2049, 3001, 4097, 6001, 6144 - 1)] == ["two tiles"] * 5
    assert [chosen(N) for N in (1, 1000, 1025, 2048, 4095, 4112, 5120, 6145, 8191, 8192)] == [
        "persistent"
    ] * 10
    assert (
        chosen(8208) == chosen(16384) == chosen(8193, M=33) == "split"
        and chosen(8193, M=32) == "columns"
    )
    assert (
        chosen(8193, centred=True)
        == chosen(8193, torch.float32)
        == chosen(8208, torch.float64)
        == "columns"
    )
    # few rows have too little work for programs that wait for one another
    assert (
        chosen(16384, M=32) == chosen(65536, M=16) == "columns"
        and chosen(65536, M=17) == chosen(16384, M=33) == "split"
    )
    # two tiles of rows that are loaded as vectors, where the memory is fast
    monkeypatch.setattr(device, "find_bandwidth", lambda _: H200.bandwidth)
    assert [chosen(N) for N in (2064, 3072, 5120, 8208, 12288)] == ["two tiles"] * 5
    assert [chosen(N) for N in (2048, 3088, 4096, 6144, 8192)] == ["persistent"] * 5 and chosen(
        12304
    ) == "split"
    assert chosen(3072, torch.float32) == "persistent" and chosen(12288, centred=True) == "split"


@pytest.mark.parametrize(
    ("shared_bytes", "itemsize", "matrices", "stages"),
    [(232448, 2, 2, 3), (232448, 4, 3, 3), (232448, 8, 2, 2), (166912, 4, 2, 3),
     (166912, 4, 3, 2), (101376, 8, 3, 1)],
)  # fmt: skip
def test_tiles_in_flight_fit_the_shared_memory(shared_bytes, itemsize, matrices, stages):
    """4096 columns on an H100, an A100 and an L4. Three tiles of fp64 take 256 KB."""
    tile = tables.persistent(4096)
    stage_bytes = matrices * tile.rows * tile.block * itemsize
    assert tables.fit_stages(tile.stages, stage_bytes, shared_bytes) == stages


@pytest.mark.parametrize("N", [1, 2048, 8192, 8193, 16384, 40000, 262144, 10**6])
def test_tiles_of_partial_sums_are_powers_of_two_and_small(N):
    rows, columns, warps = tables.column_sums(N)
    assert rows & (rows - 1) == columns & (columns - 1) == 0 and rows * columns <= 32 * warps * 32


@given(M=st.integers(1, 10**6), programs=st.integers(0, 2000), centred=st.booleans())
def test_chunks_of_rows_hold_every_row_once_and_are_enough(M, programs, centred):
    chunks, rows = tables.row_chunks(M, programs, centred=centred)
    wanted = 512 if centred else 2048
    assert (chunks - 1) * rows < M <= chunks * rows and rows <= max(32, -(-M // 128))
    # programs enough, or rows so few that a chunk more costs a partial sum more
    if programs and M >= 16:
        assert rows <= 4 or rows * wanted < (M + 1) * programs + wanted
        assert rows >= min(4, M) and (
            rows == 4 or chunks * programs <= max(wanted + programs, 128 * programs)
        )
    else:
        assert rows == min(M, max(32, -(-M // 128)))
