"""The six algorithms: against float64 within their bounds, rounded as they say, and as wrong as the
sources say."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.norms import statistics
from course_lib.norms.statistics import (
    ALGORITHMS,
    ORDERS,
    Partial,
    bound,
    condition_number,
    unit_roundoff,
)

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64}
N = 8192


def rows(mean: float, count: int = 16, n: int = N, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((count, n)) + mean).astype(np.float32)


def error(var, x) -> np.ndarray:
    true = np.asarray(x, np.float64).var(axis=-1)
    return np.abs(np.asarray(var, np.float64) - true) / true


def exact_variance(row) -> Fraction:
    values = [Fraction(float(v)) for v in row]
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / len(values)


@settings(max_examples=60, deadline=None)
@given(
    algorithm=st.sampled_from(ALGORITHMS),
    order=st.sampled_from(ORDERS),
    dtype=st.sampled_from(list(DTYPES)),
    n=st.integers(2, 70),
    ratio=st.sampled_from([0.0, 0.5, 3.0, 40.0, 900.0]),
    std=st.sampled_from([1.0, 0.25, 7.0]),
    seed=st.integers(0, 10**6),
)
def test_every_algorithm_stays_within_its_bound(algorithm, order, dtype, n, ratio, std, seed):
    x = (std * (np.random.default_rng(seed).standard_normal(n) + ratio)).astype(DTYPES[dtype])
    true = float(exact_variance(x))
    with np.errstate(over="ignore", invalid="ignore"):
        got = statistics.compute(algorithm, x, DTYPES[dtype], order)
    largest = float(ml_dtypes.finfo(DTYPES[dtype]).max)
    x64 = x.astype(np.float64)
    squared = (
        (x64 - (x64[0] if algorithm == "shifted" else 0)) ** 2
        if algorithm in ("one_pass", "shifted")
        else (x64 - x64.mean()) ** 2
    )
    if true == 0 or 2 * squared.sum() > largest or 2 * np.abs(x64).sum() > largest or true < 1e-3:
        return  # the bounds hold where nothing over- or underflows
    kappa = float(condition_number(x64, x64[0] if algorithm == "shifted" else 0.0))
    limit = bound(algorithm, n, kappa, unit_roundoff(DTYPES[dtype]), order)
    assert abs(float(got.var) - true) <= limit * true * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mean", [0, 10, 1000, 10000])
def test_long_rows_stay_within_the_bound_and_it_is_not_vacuous_for_two_pass(algorithm, mean):
    x = rows(mean, 4)
    shift = x[:, 0] if algorithm == "shifted" else 0.0
    limits = [bound(algorithm, N, kappa, 2.0**-24) for kappa in condition_number(x, shift)]
    assert (error(statistics.compute(algorithm, x).var, x) <= limits).all()
    assert algorithm != "two_pass" or max(limits) < 1e-4


def test_the_measured_errors_of_the_sources():
    one_pass = {
        mean: error(statistics.compute("one_pass", rows(mean, 64)).var, rows(mean, 64)).max()
        for mean in (10, 1000, 10000)
    }
    assert 1e-5 < one_pass[10] < 1e-4 and 0.05 < one_pass[1000] < 0.5 and one_pass[10000] > 1
    assert (statistics.compute("one_pass", rows(10000, 64)).var < 0).any()
    for mean in (10, 1000, 10000):
        x = rows(mean, 64)
        assert error(statistics.compute("two_pass", x).var, x).max() < 2e-6
        assert error(statistics.compute("shifted", x).var, x).max() < 2e-6


def test_the_published_webgpu_line_is_no_variance_in_exact_arithmetic_either():
    x = np.random.default_rng(2755).normal(1, 1, 1024)
    values = [Fraction(v) for v in x]
    mean = sum(values) / 1024
    assert round(x.var(), 2) == 1.06
    assert round(float(sum(v * v for v in values) - mean * mean / 1024)) == 2099
    assert abs(float(sum(v * v for v in values) / 1024 - mean * mean) - x.var()) < 1e-12


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_operation_is_rounded_once(dtype):
    """One pass over a short row, again with exact fractions and one rounding an operation."""
    x = np.array([1.1, 2.7, 3.3, -0.4, 5.9]).astype(DTYPES[dtype])

    def fl(value):
        return (
            Fraction(float(np.asarray(float(value)).astype(DTYPES[dtype])))
            if dtype != "fp64"
            else Fraction(float(value))
        )

    total = squares = Fraction(0)
    for value in (Fraction(float(v)) for v in x):
        total, squares = fl(total + value), fl(squares + fl(value * value))
    mean = fl(total / 5)
    got = statistics.one_pass(x, DTYPES[dtype])
    assert Fraction(float(got.mean)) == mean
    assert Fraction(float(got.var)) == fl(fl(squares / 5) - fl(mean * mean))
    assert got.mean.dtype == got.var.dtype == DTYPES[dtype]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17, 64])
def test_each_order_adds_every_element_once(order, n):
    x = np.arange(1.0, n + 1) * np.ones((2, 1))
    assert (statistics.total(x, order) == n * (n + 1) / 2).all()


def test_the_orders_are_what_they_are_called():
    big = np.float32(2**24)
    x = np.array([big, 1, 1, 0], np.float32)
    assert statistics.total(x, "sequential") == big  # (big + 1) + 1
    # (1 + 1) + (big + 0)
    assert statistics.total(np.array([1, 1, big, 0], np.float32), "pairwise") == big + 2
    # (1 + 1) + (big + 0)
    assert statistics.total(np.array([1, big, 1, 0], np.float32), "tree") == big + 2
    assert [statistics.depth(n) for n in (1, 2, 8192)] == [0, 1, 8191]
    assert [statistics.depth(n, "tree") for n in (1, 2, 3, 8192, 8193)] == [0, 1, 2, 13, 14]


def test_half_precision_accumulators_stop():
    assert statistics.total(np.ones(4096, np.float16)) == 2048
    assert statistics.total(np.ones(4096, ml_dtypes.bfloat16)) == 256
    assert statistics.total(np.ones(4096, np.float16), "tree") == 4096


def test_naive_rounds_its_results_as_pytorch_does():
    torch = pytest.importorskip("torch")
    x = torch.randn(8, 500, generator=torch.Generator().manual_seed(0)).half() * 3 + 20
    deviation = x - x.mean(dim=1, keepdim=True)
    typed = (deviation * deviation).mean(dim=1)
    got = statistics.naive(x.numpy(), np.float16)
    assert (got.mean == x.mean(dim=1).numpy()).all()
    # one unit in the last place
    assert np.abs(got.var.astype(np.float64) - typed.double().numpy()).max() <= 2.0**-10 * 16


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_awkward_rows(algorithm):
    one = statistics.compute(algorithm, np.float32([[3.0], [-2.0]]))
    assert one.mean.tolist() == [3, -2] and one.var.tolist() == [0, 0]
    constant = statistics.compute(algorithm, np.full((2, 7), 0.5, np.float32))
    assert constant.mean.tolist() == [0.5, 0.5] and np.abs(constant.var).max() < 1e-7
    deep = statistics.compute(algorithm, rows(3, 6, 33).reshape(2, 3, 33))
    assert deep.mean.shape == deep.var.shape == (2, 3)
    strided = rows(3, 4, 66)[::2, ::2]
    assert np.allclose(
        statistics.compute(algorithm, strided).var,
        strided.astype(np.float64).var(axis=1),
        rtol=1e-4,
    )
    nan = np.ones((2, 5), np.float32)
    nan[1, 2] = np.nan
    got = statistics.compute(algorithm, nan)
    assert np.isnan(got.var).tolist() == [False, True]
    with pytest.raises(ValueError, match="row without numbers"):
        statistics.compute(algorithm, np.zeros((2, 0), np.float32))


def partials(draw):
    count = draw(st.integers(0, 60))
    if not count:
        return statistics.empty((), np.float32), np.zeros(0)
    x = (
        np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal(count)
        + draw(st.sampled_from([-50.0, 0.0, 300.0]))
    ).astype(np.float32)
    return Partial(*(part[()] for part in statistics.merged(statistics.partials(x)))), x.astype(
        np.float64
    )


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_merges_are_right_and_associative_within_rounding(data):
    (a, xa), (b, xb), (c, xc) = (partials(data.draw) for _ in range(3))
    left = statistics.merge(statistics.merge(a, b), c)
    right = statistics.merge(a, statistics.merge(b, c))
    swapped = statistics.merge(c, statistics.merge(b, a))
    x = np.concatenate([xa, xb, xc])
    for got in (left, right, swapped):
        assert got.count == len(x)
        if not len(x):
            assert (got.mean, got.M2) == (0, 0)
            continue
        scale = np.abs(x).max()
        assert abs(float(got.mean) - x.mean()) <= 20 * 2.0**-24 * scale
        M2 = ((x - x.mean()) ** 2).sum()
        assert abs(float(got.M2) - M2) <= 60 * 2.0**-24 * (M2 + scale * np.sqrt(len(x) * M2)) + 1e-6


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 60), block=st.integers(1, 70), seed=st.integers(0, 1000))
def test_any_block_gives_the_same_statistics(n, block, seed):
    x = rows(5, 3, n, seed)
    got = statistics.welford_blocked(x, np.float32, block)
    assert np.allclose(got.mean, x.astype(np.float64).mean(axis=1), rtol=1e-6)
    assert np.allclose(got.var, x.astype(np.float64).var(axis=1), rtol=1e-4, atol=1e-5)
    assert (statistics.partials(x, np.float32, block).count.sum(axis=-1) == n).all()


def test_blocks_of_the_whole_row_are_welford_and_a_merge_with_one_is_its_update():
    x = rows(100, 4, 300)
    assert (statistics.welford_blocked(x, np.float32, 300).var == statistics.welford(x).var).all()
    state = Partial(np.array(4), np.float64(1.0), np.float64(2.0))
    one = Partial(np.array(1), np.float64(9.0), np.float64(0.0))
    assert np.allclose(
        statistics.merge(state, one), statistics.welford_update(state, np.float64(9.0)), rtol=1e-14
    )


def test_a_merge_does_not_overflow_where_the_result_fits():
    empty = statistics.empty((), np.float16)
    b = Partial(np.array(3), np.float16(500), np.float16(2))
    for got in (statistics.merge(empty, b), statistics.merge(b, empty)):
        assert (got.count, got.mean, got.M2) == (3, 500, 2)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 200), place=st.integers(0, 199), value=st.floats(-1e6, 1e6))
def test_a_shift_by_any_element_keeps_kappa_below_the_root_of_n_plus_1(n, place, value):
    x = np.random.default_rng(n).standard_normal(n) + 100
    x[place % n] = value
    assert condition_number(x, x[place % n]) <= np.sqrt(1 + n) * (1 + 1e-9)


def test_condition_number_and_unit_roundoff():
    assert (
        condition_number([1.0, 3.0]) == pytest.approx(np.sqrt(5))
        and condition_number([-1.0, 1.0]) == 1
    )
    assert condition_number([2.0, 2.0]) == np.inf and condition_number([0.0, 0.0]) == 1
    assert [unit_roundoff(dtype) for dtype in DTYPES.values()] == [
        2.0**-11,
        2.0**-8,
        2.0**-24,
        2.0**-53,
    ]
    assert (
        statistics.gamma(2**24, 2.0**-24) == np.inf
        and bound("two_pass", 4096, 1.0, 2.0**-11, "sequential") == np.inf
    )


def test_bounds_have_the_slopes_of_the_table():
    u = 2.0**-24

    def slope(name, kappa):
        return np.log10(bound(name, 1024, 10 * kappa, u) / bound(name, 1024, kappa, u))

    assert slope("one_pass", 1e3) == pytest.approx(2, abs=0.01) and slope(
        "chan", 1e3
    ) == pytest.approx(1, abs=0.1)
    assert slope("two_pass", 1.0) < 0.01 and slope("two_pass", 1e6) == pytest.approx(2, abs=0.01)
    assert 900 < bound("welford", 10000, 1.0, u) / bound("welford", 10, 1.0, u) * 14 / 10 < 1100


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: statistics.compute("three_pass", [1.0]), "three_pass"),
        (lambda: statistics.total(np.ones(3), "random"), "random"),
        (lambda: bound("three_pass", 2, 1.0, 1e-7), "three_pass"),
        (lambda: statistics.partials(np.ones(3), np.float32, 0), "at least one"),
    ],
)
def test_slips_are_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()
