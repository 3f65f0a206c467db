"""Rows split over programs, or over two launches: values, fixed bits, and a wait that ends in
whatever order the programs start."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import course_lib
from course_lib.interpreter import schedule
from course_lib.kernels import split_row_backward
from course_lib.kernels.launch import choice, device, tables
from course_lib.kernels.launch.device_classes import DEVICE_CLASSES, H100, H200
from course_lib.kernels.layer_norm import add_layer_norm_forward, layer_norm_forward
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_forward
from course_lib.kernels.split_row import split_row_forward_kernel
from course_lib.norms import functional, reference

DEVICE = course_lib.DEVICE
TABLES = [
    pytest.param(tuned, dtype, id=f"{tuned.name}-{dtype}")
    for tuned in DEVICE_CLASSES
    for dtype in (torch.float16, torch.bfloat16, torch.float32)
    if tuned.itemsize in (None, dtype.itemsize)
]
CPU = pytest.mark.skipif(course_lib.MODE != "cpu", reason="interleaves programs in the interpreter")


def make(shape, dtype=torch.float32, seed=0, mean=3.0):
    return (
        (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + mean)
        .to(dtype)
        .to(DEVICE)
    )


@pytest.mark.parametrize("algorithm", ["split", "few rows"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (2, 40), (5, 257), (1, 20000)])
def test_both_norms_match_the_specification(shape, dtype, algorithm):
    x, w, b = make(shape, dtype), make(shape[1], dtype, 1, 0.5), make(shape[1], dtype, 2, 0.0)
    y, mean, rstd = layer_norm_forward(x, w, b, 1e-5, algorithm=algorithm)
    want = reference.layer_norm(x, w, b, 1e-5)
    tolerance = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 2e-5}[dtype]
    assert y.dtype == x.dtype and np.allclose(
        reference.float64(y), want.y, rtol=tolerance, atol=10 * tolerance
    )
    assert np.allclose(reference.float64(mean), want.mean, rtol=1e-5) and np.allclose(
        reference.float64(rstd), want.rstd, rtol=1e-4
    )
    y, rstd = rms_norm_forward(x, w, 1e-5, algorithm=algorithm)
    want = reference.rms_norm(x, w, 1e-5)
    assert np.allclose(reference.float64(y), want.y, rtol=tolerance, atol=tolerance)
    assert np.allclose(reference.float64(rstd), want.rstd, rtol=1e-5)


def test_a_mean_far_from_zero_loses_nothing():
    x = make((2, 3000), mean=1e4)
    _, _, rstd = layer_norm_forward(x, None, None, 1e-5, algorithm="split")
    assert np.allclose(reference.float64(rstd), reference.layer_norm(x).rstd, rtol=2e-3)


def same_bits(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("N", [300, 4096, 32768, 40000, 40001, 131072 + 16, 262144])
def test_a_row_has_the_same_bits_in_every_batch(N, dtype):
    """By the split kernel alone, and by what is chosen: two algorithms where the rows are long, of
    which one is for few rows."""
    if course_lib.MODE == "cpu" and N > 4096:
        pytest.skip("the longest rows are for a GPU")
    many = H100.few_rows_bytes // (N * dtype.itemsize) + 2 if course_lib.MODE == "gpu" else 6
    x, r = make((many, N), dtype), make((many, N), dtype, 3, 0.0)
    w, b = make(N, dtype, 1, 0.5), make(N, dtype, 2, 0.0)
    for algorithm in (
        ("split", "few rows") if N == 4096 else ("split",) if N == 300 else ("split", "auto")
    ):
        whole = (
            layer_norm_forward(x, w, b, 1e-5, algorithm=algorithm),
            rms_norm_forward(x, w, 1e-5, algorithm=algorithm),
        )
        for rows in (slice(0, 1), slice(3, 5), slice(many - 1, many)):
            assert same_bits(
                layer_norm_forward(x[rows], w, b, 1e-5, algorithm=algorithm),
                [t[rows] for t in whole[0]],
            )
            assert same_bits(
                rms_norm_forward(x[rows], w, 1e-5, algorithm=algorithm), [t[rows] for t in whole[1]]
            )
    whole = add_layer_norm_forward(x, r, w, b, 1e-5), add_rms_norm_forward(x, r, w, 1e-5)
    for rows in (slice(0, 1), slice(3, 5), slice(many - 1, many)):
        assert same_bits(
            add_layer_norm_forward(x[rows], r[rows], w, b, 1e-5), [t[rows] for t in whole[0]]
        )
        assert same_bits(
            add_rms_norm_forward(x[rows], r[rows], w, 1e-5), [t[rows] for t in whole[1]]
        )


def test_two_launches_give_a_row_the_same_bits_with_one_row_a_program_and_with_four(monkeypatch):
    x, r, w, b = make((6, 37)), make((6, 37), seed=1), make(37, seed=2), make(37, seed=3)
    taken = []
    for rows in (1, 4):
        monkeypatch.setattr(tables, "few_rows", lambda M, N, rows=rows: (rows, 16, 1))
        taken.append(
            [
                *layer_norm_forward(x, w, b, 1e-5, algorithm="few rows"),
                *rms_norm_forward(x, w, 1e-5, algorithm="few rows"),
            ]
        )
        with monkeypatch.context() as added:
            added.setattr(choice, "choose_forward", lambda *tensors, **facts: "few rows")
            taken[-1] += [
                *add_layer_norm_forward(x, r, w, b, 1e-5),
                *add_rms_norm_forward(x, r, w, 1e-5),
            ]
    assert same_bits(*taken)
    assert np.allclose(
        reference.float64(taken[1][0]), reference.layer_norm(x, w, b, 1e-5).y, atol=1e-5
    )


@pytest.mark.parametrize("algorithm", ["split", "few rows", "blocked", "two tiles"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_addition_is_fused_and_rounded_as_pytorch_rounds_it(algorithm, dtype, monkeypatch):
    monkeypatch.setattr(choice, "choose_forward", lambda *tensors, **facts: algorithm)
    x = make((4, 90), dtype)[:, ::2]
    r = make((4, 45), dtype, 1, 0.0)
    w = make(45, dtype, 2, 0.5)
    b = make(45, dtype, 3, 0.0)
    total, y, mean, rstd = add_layer_norm_forward(x, r, w, b, 1e-5)
    want = reference.layer_norm(x + r, w, b, 1e-5)
    rtol = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-5}[dtype]
    assert torch.equal(total, x + r) and np.allclose(
        reference.float64(y), want.y, atol=2 * rtol, rtol=rtol
    )
    assert np.allclose(reference.float64(mean), want.mean, rtol=1e-5) and np.allclose(
        reference.float64(rstd), want.rstd, rtol=1e-5
    )
    total, y, rstd = add_rms_norm_forward(x, r, w, 1e-5)
    want = reference.rms_norm(x + r, w, 1e-5)
    assert torch.equal(total, x + r) and np.allclose(
        reference.float64(y), want.y, atol=2 * rtol, rtol=rtol
    )
    assert np.allclose(reference.float64(rstd), want.rstd, rtol=1e-5)


def test_what_cannot_be_taken_is_refused_in_words():
    x = make((2, 40))
    with pytest.raises(ValueError, match="fp64; use 'blocked'"):
        layer_norm_forward(x.double(), None, None, 1e-5, algorithm="split")
    with pytest.raises(ValueError, match="fp64; use 'blocked'"):
        rms_norm_forward(x.double(), None, 1e-5, algorithm="few rows")
    with pytest.raises(ValueError, match="must be the same"):
        add_layer_norm_forward(x, x.half(), None, None, 1e-5)
    with pytest.raises(ValueError, match="must be the same"):
        add_rms_norm_forward(x, x[:, 1:], None, 1e-5)


def test_the_algorithm_for_long_rows_follows_size_dtype_and_room(monkeypatch):
    def chosen_for(centred, x, residual=None, *vectors):
        return choice.choose_forward(
            x, residual, *vectors, centred=centred, tuned=choice.find_device_class(x)
        )

    def chosen(*tensors):
        assert chosen_for(True, *tensors) == chosen_for(False, *tensors)
        return chosen_for(True, *tensors)

    few = make((2, 40000))
    many = torch.empty(600, 40000, device=DEVICE)
    wide = make((2, 40000)).double()
    assert chosen(few) == chosen(few[:, 16:]) == chosen(few, few) == "few rows"
    assert chosen(make((2, 40004))) == "split", "fp32 rows of this length have no vectors"
    for odd in (few[:, 1:-15], few[:, ::2], few[:, :-1], make((2, 40010))):
        if odd.shape[1] > tables.RESIDENT_LIMIT:
            assert chosen(odd) == "split"
        assert chosen(few, odd) == "split"
    assert (
        chosen(few, None, None, make(40000)) == "few rows"
        and chosen(few, None, make(40001)[1:]) == "split"
    )
    assert chosen(many) == "split" and chosen(wide) == "blocked"
    # in fp16 a row of 32768 columns is shared by programs, in bf16 LayerNorm's alone, and with a
    # residual it is not
    half = torch.empty(600, 32768, dtype=torch.float16, device=DEVICE)
    bfloat = half.bfloat16()
    assert (
        chosen(half) == "split"
        and chosen(half[:2]) == "few rows"
        and chosen(half, half) == chosen(bfloat, bfloat) == "resident"
    )
    assert [chosen_for(centred, bfloat) for centred in (True, False)] == ["split", "resident"]
    # LayerNorm on fast memory: shorter rows, too, where all loads are whole vectors
    with monkeypatch.context() as fast:
        fast.setattr(device, "find_bandwidth", lambda _: H200.bandwidth)
        long, odd = (
            torch.empty(600, N, dtype=torch.float16, device=DEVICE) for N in (12304, 12305)
        )
        assert [chosen_for(True, x) for x in (long, odd)] == ["split", "two tiles"]
        assert chosen(odd, odd) == "two tiles"
    # rows of two bytes an element that begin at any address: two launches, however many rows there
    # are
    for rows in (1, 600):
        for dtype in (torch.float16, torch.bfloat16):
            odd, longer = (
                torch.empty(rows, N, dtype=dtype, device=DEVICE) for N in (40001, 140001)
            )
            assert chosen_for(True, odd) == chosen(odd, odd) == chosen(longer) == "few rows"
            assert chosen_for(False, odd) == "split"
        assert chosen(odd.float()) == "split"
    monkeypatch.setattr(choice, "has_room_for", lambda x, shares: False)
    assert chosen(many) == "few rows" and chosen(half) == "resident" and chosen(few) == "few rows"
    assert chosen(many.double()) == "blocked"


@pytest.mark.parametrize("tuned, dtype", TABLES)
@pytest.mark.parametrize("centred, add", list(itertools.product((True, False), repeat=2)))
def test_a_chunk_has_a_lane_of_its_own_wherever_a_row_may_be_one_of_few(tuned, dtype, centred, add):
    """A warp adds its lanes up in one order. A lane with two chunks adds those first, so with other
    warps the bits are others."""
    for N in range(32768, tuned.few_rows_bytes // dtype.itemsize + 1, 1008):
        shares = tables.split(N, dtype, centred=centred, add=add, tuned=tuned)
        if shares.chunks > 128:
            # a row that no GPU of today has room for: "few rows" or "blocked", which promise no
            # equal bits
            continue
        lanes = 32 * min(shares.num_warps, tables.few_rows(1, N)[2])
        assert tables.next_power_of_2(shares.chunks) <= lanes, (N, shares)


@pytest.mark.parametrize("tuned, dtype", TABLES)
@pytest.mark.parametrize("centred, add", list(itertools.product((True, False), repeat=2)))
def test_the_chunks_hold_every_column_of_a_row_once(tuned, dtype, centred, add):
    """133120 is a multiple of 2048 and not of 4096: chunks of 4096 columns without a mask would
    leave half a chunk out."""
    for N in [
        1,
        17,
        4095,
        4096,
        4097,
        100003,
        *range(8192, 2**19 + 1, 2048),
        *range(5008, 2**19, 5008),
    ]:
        shares = tables.split(N, dtype, centred=centred, add=add, tuned=tuned)
        assert (shares.chunks - 1) * shares.block < N <= shares.chunks * shares.block, (N, shares)
        assert not shares.full or shares.chunks * shares.block == N, (N, shares)
    for N in [1, 4096, 8208, 100003, 2**20]:
        shares = tables.split_backward(N, dtype, tuned=tuned)
        assert (shares.chunks - 1) * shares.block < N <= shares.chunks * shares.block, (N, shares)


def test_groups_share_the_rows_evenly():
    assert [
        tables.even_groups(*case) for case in [(1, 8), (1024, 33), (10, 4), (7, 7), (3, 0)]
    ] == [1, 32, 4, 7, 1]
    for M in range(1, 60):
        for most in range(1, 20):
            groups = tables.even_groups(M, most)
            assert 1 <= groups <= min(M, most) and -(-M // groups) == -(-M // min(M, most))


def test_a_bad_row_stays_alone_and_strides_are_minded():
    wide = make((8, 120))
    wide[1, 7] = float("nan")
    x = wide[:4, ::2].t().contiguous().t()  # unit stride between rows
    y, _, _ = layer_norm_forward(x, None, None, 1e-5, algorithm="split")
    assert y[[0, 2, 3]].isfinite().all()
    assert np.allclose(reference.float64(y[2:]), reference.layer_norm(x[2:]).y, atol=1e-5)


def test_no_length_is_refused_by_the_public_functions():
    N = tables.RESIDENT_LIMIT + 5
    x = make((2, N), torch.float16)
    r = make((2, N), torch.float16, 1, 0.0)
    w = make(N, torch.float16, 2, 0.5)
    assert np.allclose(
        reference.float64(functional.layer_norm(x, (N,), w)),
        reference.layer_norm(x, w).y,
        atol=1e-2,
        rtol=2e-3,
    )
    total, y, _ = add_rms_norm_forward(x, r, w, 1e-5)
    assert torch.equal(total, x + r) and np.allclose(
        reference.float64(y), reference.rms_norm(total, w).y, atol=1e-2, rtol=2e-3
    )
    assert layer_norm_forward(x[:0], None, None, 1e-5)[0].shape == (0, N)


def launched(
    seed: int, resident: int, M: int = 5, N: int = 40, groups: int = 2, add: bool = False
) -> tuple[schedule.Schedule, torch.Tensor]:
    x, r = make((M, N)), make((M, N), seed=1, mean=0.0)
    y, total, mean, rstd = torch.empty_like(x), torch.empty_like(x), torch.empty(M), torch.empty(M)
    words = torch.zeros(2 + M * 4, dtype=torch.int64)
    outcome = schedule.run(
        split_row_forward_kernel, (groups * 3,), x, r, total, y, x, x, mean, rstd, words[2:], words,
        N, 1, N, 1, N, M, N, 1e-5, groups,
        seed=seed, resident=resident, CENTRED=True, HAS_W=False, HAS_B=False, ADD=add, CHUNKS=3,
        CHUNKS_2=4, COPIES=2, BLOCK=16, DEPENDENT=False,
        FULL=False,
    )  # fmt: skip
    return outcome, y


@CPU
@pytest.mark.parametrize("resident", [3, 4, 9])
@pytest.mark.parametrize("seed", range(6))
def test_no_race_and_no_deadlock_in_any_order_tried(seed, resident):
    """Programs start in an order that the seed draws; room for one row's chunks is enough."""
    add = seed % 2 == 1
    outcome, y = launched(seed, resident, add=add)
    assert outcome.complete and not outcome.findings, outcome.findings
    assert torch.equal(y, launched(0, 9, add=add)[1])


@CPU
def test_with_less_room_than_a_row_has_chunks_it_would_hang_and_the_scheduler_says_so():
    outcome, _ = launched(0, 2)
    assert outcome.deadlock is not None


def test_a_device_too_small_for_a_row_is_refused(monkeypatch):
    monkeypatch.setattr(choice, "has_room_for", lambda x, shares: False)
    with pytest.raises(ValueError, match="more than this device runs at once beside other kernels"):
        layer_norm_forward(make((1, 40)), None, None, 1e-5, algorithm="split")
    assert layer_norm_forward(make((1, 40000)), None, None, 1e-5)[0].isfinite().all()


@pytest.mark.parametrize(
    ("chunks", "programs", "has_room"),
    [(99, 1, True), (100, 1, False), (128, 2, True), (132, 2, True), (133, 2, False)],
)
def test_a_quarter_of_the_places_is_left_to_other_kernels(monkeypatch, chunks, programs, has_room):
    monkeypatch.setattr(device, "count_multiprocessors", lambda _: 132)
    x = SimpleNamespace(dtype=torch.float16, device=torch.device("cuda"))
    launch = tables.SplitLaunch(chunks, 4096, 4, programs)
    assert choice.has_room_for(x, launch) is has_room


def test_a_row_that_32_bits_cannot_count_is_refused():
    x = torch.empty((1, 1), dtype=torch.float16).expand(1, 2**31 - 2**15 + 1)
    row = torch.empty(1)
    with pytest.raises(ValueError, match="the kernels count them in 32 bits"):
        layer_norm_forward(x, None, None, 1e-5)
    with pytest.raises(ValueError, match="the kernels count them in 32 bits"):
        layer_norm_backward(x, x, None, row, row)


# ---- backward ------------------------------------------------------------------------------------


def backward(
    seed: int, resident: int, M: int = 4, N: int = 40, groups: int = 2
) -> tuple[schedule.Schedule, list[torch.Tensor]]:
    x, dy = make((M, N)), make((M, N), seed=1, mean=0.0)
    _, mean, rstd = layer_norm_forward(x, None, None, 1e-5)
    dx, partial = torch.empty_like(x), torch.full((2, groups, N), float("nan"))
    words = torch.zeros(2 + M * 4, dtype=torch.int64)
    outcome = schedule.run(
        split_row_backward.split_row_backward_kernel, (groups * 3,), dy, x, x, mean, rstd, dy, dx,
        partial[0], partial[1], words[2:], words,
        N, 1, N, 1, N, M, N, groups, seed=seed, resident=resident, CENTRED=True, HAS_W=False,
        CHUNKS=3, CHUNKS_2=4,
        COPIES=2, BLOCK=16, DEPENDENT=False, HAS_DTOTAL=False, HAS_DW=True, HAS_DB=True,
    )  # fmt: skip
    return outcome, [dx, partial[0].sum(0), partial[1].sum(0)]


@CPU
@pytest.mark.parametrize("resident", [3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_the_backward_exchange_has_no_race_and_no_deadlock_in_any_order_tried(seed, resident):
    outcome, results = backward(seed, resident)
    assert outcome.complete and not outcome.findings, outcome.findings
    want = reference.layer_norm_vjp(make((4, 40), seed=1, mean=0.0), make((4, 40)))
    for got, first, exact in zip(results, backward(0, 6)[1], want, strict=True):
        assert torch.equal(got, first) and np.allclose(reference.float64(got), exact, atol=1e-5)


@CPU
def test_the_backward_exchange_hangs_with_less_room_than_a_group_and_the_scheduler_says_so():
    assert backward(0, 2)[0].deadlock is not None
