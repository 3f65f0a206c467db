"""Mean and variance of rows by six algorithms, in any floating-point type, with bounds on the error
of each.

Every function takes x of shape (..., N), rounds it to ``dtype`` and does **each operation in that
dtype**: one addition, one rounding. NumPy's and ml_dtypes' element-wise operations do just that
(fp16 and bf16 are computed in fp32 and rounded, which for + - * / gives the correctly rounded
result). ``np.sum`` and ``np.mean`` do not: they choose an order and, for fp16, a wider accumulator.
So every sum is written out here, in an order that has a name. NumPy on a CPU forms no fused
multiply-adds; a GPU does, which changes the last bits but no conclusion.

Counts are exact integers; before a division by a count, the count is rounded to ``dtype``.

Symbols: N columns, ``var`` biased (divided by N), ``M2`` the sum of squared deviations from the
mean, u the unit roundoff, ``kappa = sqrt(1 + mean^2 / var)`` the condition number.

Source: Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance: Analysis and
Recommendations".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

ORDERS = ("sequential", "pairwise", "tree")
ALGORITHMS = ("naive", "one_pass", "shifted", "two_pass", "welford", "chan")


class Statistics(NamedTuple):
    """``mean`` and ``var`` of each row, shape (...), in the dtype of the computation."""

    mean: np.ndarray
    var: np.ndarray


class Partial(NamedTuple):
    """The statistics of a part of the numbers: their count, their mean, and M2, the sum of their
    squared deviations from that mean.

    The partial of no numbers is (0, 0, 0).
    """

    count: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride] - it hides tuple.count, which no code calls here
    mean: np.ndarray
    M2: np.ndarray


# ---- sums in a named order


def total(x: np.ndarray, order: str = "sequential") -> np.ndarray:
    """Return the sum over the last axis in x's own dtype, with every addition rounded.

    "sequential" adds element after element, so the last of its N - 1 additions depends on all
    others. "pairwise" adds neighbours, then neighbouring sums. "tree" adds the upper half to the
    lower half and repeats, as a GPU's lanes do. In the latter two an element passes through only
    ceil(log2 N) additions.

    Raises: ValueError if the order is unknown.
    """
    if order == "sequential":
        running = x[..., 0]
        for column in range(1, x.shape[-1]):
            running = running + x[..., column]
        return running
    if order not in ORDERS:
        raise ValueError(f"the orders are {', '.join(ORDERS)}; you asked for {order!r}.")
    x = _pad(x, _levels(x.shape[-1]))
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., 0::2] + x[..., 1::2] if order == "pairwise" else x[..., :half] + x[..., half:]
    return x[..., 0]


def depth(n: int, order: str = "sequential") -> int:
    """Return the most additions, and so roundings, that one element passes through when n numbers
    are added up."""
    return n - 1 if order == "sequential" else _levels(n)


# ---- the algorithms


def naive(x, dtype: DTypeLike = np.float32, order: str = "pairwise") -> Statistics:
    """Compute the statistics operation by operation, as with tensors: mean, subtract, square, mean,
    each **result** stored in ``dtype``.

    If dtype is narrower than fp32, the two means accumulate in fp32, as PyTorch's do, and round
    once at the end. A row is read four times and written twice.
    """
    x = _round(x, dtype)
    wide = np.float32 if x.dtype.itemsize < 4 else x.dtype
    n = np.asarray(x.shape[-1]).astype(wide)
    mean = (total(x.astype(wide), order) / n).astype(dtype)
    deviation = x - mean[..., None]
    squares = deviation * deviation
    return Statistics(mean, (total(squares.astype(wide), order) / n).astype(dtype))


def one_pass(x, dtype: DTypeLike = np.float32, order: str = "sequential") -> Statistics:
    """Compute ``E[x^2] - E[x]^2`` in one read. The variance is not clamped: when cancellation takes
    all digits, it may be negative."""
    x = _round(x, dtype)
    n = _number(x.shape[-1], x)
    mean = total(x, order) / n
    return Statistics(mean, total(x * x, order) / n - mean * mean)


def shifted_one_pass(
    x, dtype: DTypeLike = np.float32, order: str = "sequential", shift=None
) -> Statistics:
    """Compute the statistics in one pass over ``x - shift``, one read. The shift changes the
    condition number but not the variance.

    Args:
        shift: one number per row, shape (...); None takes the first element of the row.
    """
    x = _round(x, dtype)
    shift = x[..., 0] if shift is None else _round(shift, dtype)
    shifted = one_pass(x - shift[..., None], dtype, order)
    return Statistics(shifted.mean + shift, shifted.var)


def two_pass(x, dtype: DTypeLike = np.float32, order: str = "sequential") -> Statistics:
    """Compute the mean, then the mean of ``(x - mean)^2``. Two reads."""
    x = _round(x, dtype)
    n = _number(x.shape[-1], x)
    mean = total(x, order) / n
    deviation = x - mean[..., None]
    return Statistics(mean, total(deviation * deviation, order) / n)


def welford(x, dtype: DTypeLike = np.float32) -> Statistics:
    """Update mean and M2 with one element after the other. One read.

    Source: Welford 1962, "Note on a Method for Calculating Corrected Sums of Squares and Products".
    """
    x = _round(x, dtype)
    state = empty(x.shape[:-1], dtype)
    for column in range(x.shape[-1]):
        state = welford_update(state, x[..., column])
    return finished(state)


def welford_blocked(x, dtype: DTypeLike = np.float32, block: int = 1) -> Statistics:
    """Run Welford within blocks of ``block`` neighbours, on all blocks at the same time, then merge
    the blocks pairwise. One read.

    ``block=1`` is Chan's pairwise algorithm: every element is a partial of its own.
    """
    return finished(merged(partials(x, dtype, block)))


# ---- their parts


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Partial:
    """Return partials of no numbers."""
    return Partial(np.zeros(shape, np.int64), np.zeros(shape, dtype), np.zeros(shape, dtype))


def welford_update(state: Partial, x: np.ndarray) -> Partial:
    """Return ``state`` with one more number, x, of the same shape and dtype.

    One of the two deviations is from the old mean and one from the new mean: their product is
    exactly the growth of M2.
    """
    count = state.count + 1
    deviation = x - state.mean
    mean = state.mean + deviation / _number(count, x)
    return Partial(count, mean, state.M2 + deviation * (x - mean))


def merge(a: Partial, b: Partial) -> Partial:
    """Return the partial of all numbers of ``a`` and of ``b``; either may be empty, or both.

    ``n_a n_b / n`` is computed as ``n_a (n_b / n)`` and multiplied in before the difference is
    squared: so no factor exceeds the largest fp16 number unless the result does.

    Source: Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing
    Sample Variances".
    """
    count = a.count + b.count
    share = _number(b.count, b.mean) / _number(np.maximum(count, 1), b.mean)
    difference = b.mean - a.mean
    between = (difference * (_number(a.count, a.mean) * share)) * difference
    return Partial(count, a.mean + difference * share, a.M2 + b.M2 + between)


def partials(x, dtype: DTypeLike = np.float32, block: int = 1) -> Partial:
    """Return one partial per block of ``block`` neighbours, by Welford, as arrays of shape (...,
    blocks). The last block may be short.

    Raises: ValueError if block is below 1.
    """
    x = _round(x, dtype)
    if block < 1:
        raise ValueError(f"a block has at least one element; you asked for {block}.")
    n = x.shape[-1]
    blocks = -(-n // block)
    filled = np.concatenate(
        [x, np.zeros((*x.shape[:-1], blocks * block - n), x.dtype)], axis=-1
    ).reshape(*x.shape[:-1], blocks, block)
    state = empty(filled.shape[:-1], dtype)
    for column in range(block):
        inside = np.arange(blocks) * block + column < n
        new = welford_update(state, filled[..., column])
        state = Partial(
            *(np.where(inside, after, before) for before, after in zip(state, new, strict=True))
        )
    return state


def merged(parts: Partial) -> Partial:
    """Merge all partials along the last axis into one, neighbours first. A partial without a
    neighbour is merged with an empty one."""
    levels = _levels(parts.mean.shape[-1])
    parts = Partial(*(_pad(array, levels) for array in parts))
    for _ in range(levels):
        parts = merge(
            Partial(*(array[..., 0::2] for array in parts)),
            Partial(*(array[..., 1::2] for array in parts)),
        )
    return Partial(*(array[..., 0] for array in parts))


def finished(state: Partial) -> Statistics:
    """Return mean and biased variance of a partial with at least one number."""
    return Statistics(state.mean, state.M2 / _number(state.count, state.M2))


def compute(
    algorithm: str, x, dtype: DTypeLike = np.float32, order: str = "pairwise"
) -> Statistics:
    """Run one of ALGORITHMS by name. "welford" goes element by element and "chan" merges pairwise,
    whatever ``order`` is.

    Raises: ValueError if the name is unknown.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"the algorithms are {', '.join(ALGORITHMS)}; you asked for {algorithm!r}."
        )
    if algorithm in ("welford", "chan"):
        return welford(x, dtype) if algorithm == "welford" else welford_blocked(x, dtype)
    return {
        "naive": naive,
        "one_pass": one_pass,
        "shifted": shifted_one_pass,
        "two_pass": two_pass,
    }[algorithm](x, dtype, order)


# ---- their errors


def unit_roundoff(dtype) -> float:
    """Return u, the largest relative error of one rounding: 2^-24 for fp32, 2^-11 for fp16, 2^-8
    for bf16."""
    unit = np.ones((), dtype)
    u = np.ones((), dtype)
    half = np.asarray(0.5).astype(dtype)
    while unit + u > unit:  # a tie rounds to even, so 1 + u is 1 again
        u = u * half
    return float(u)


def condition_number(x, shift: float | np.ndarray = 0.0) -> np.ndarray:
    """Return ``kappa = sqrt(1 + mean^2 / var)`` of each row of ``x - shift``, in float64; infinite
    for a constant row away from 0.

    A relative error of r in the elements can change the variance by about ``2 kappa r``. If |mean|
    is much larger than std, kappa is about
    |mean| / std.
    """
    x = np.asarray(x, dtype=np.float64) - np.asarray(shift, dtype=np.float64)[..., None]
    mean = x.mean(axis=-1)
    var = ((x - mean[..., None]) ** 2).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(1.0 + np.where(mean == 0.0, 0.0, mean**2 / var))


def gamma(k: float, u: float) -> float:
    """Return ``k u / (1 - k u)``, a bound on the error of k roundings of a number; infinite once k
    u reaches 1. Higham 2002, lemma 3.1."""
    return k * u / (1.0 - k * u) if k * u < 1.0 else math.inf


def bound(
    algorithm: str, n: int, kappa: float, u: float, order: str = "pairwise", block: int = 1
) -> float:
    """Return a bound on ``|computed var - var| / var``, valid while nothing over- or underflows.

    The leading terms are those of table 1 of Chan, Golub and LeVeque 1983, which leaves constants
    out and assumes sequential sums: it has N where a pairwise sum has log2 N:

        one-pass    N kappa^2 u                    two-pass    N u + (N kappa u)^2
        shifted     as one-pass, kappa of x - shift
        Welford     N kappa u                      Chan        kappa u log2 N

    This function adds the constants. Let k be the number of roundings of one element. For two-pass
    and one-pass the constants are derived as in the lesson: every rounding is a factor (1 + d), |d|
    <= u, and k of them are a factor within gamma(k, u) of 1. The bound for two-pass is that of
    Higham 2002, problem 1.10, with the second-order term kept. For Welford and Chan the constants 4
    and 5 are chosen to cover the roundings that the table drops, and the square of the mean's error
    is added.

    Args:
        kappa: the condition number of the row; of ``x - shift`` for "shifted".
        u: the unit roundoff of the dtype. "naive" uses it for the stored results, and at most 2^-24
            for its sums.
        order: of the sums in "naive", "one_pass", "shifted" and "two_pass".
        block: the block size of "chan".

    Raises: ValueError if the algorithm is unknown.
    """
    d = depth(n, order)
    if algorithm == "naive":
        wide = min(u, 2.0**-24)
        of_mean = u + gamma(d + 2, wide)
        return gamma(6, u) + gamma(d + 2, wide) + (1 + gamma(6, u)) * (of_mean * kappa) ** 2
    if algorithm in ("one_pass", "shifted"):
        return gamma(3 * d + (6 if algorithm == "one_pass" else 12), u) * kappa**2
    if algorithm == "two_pass":
        return gamma(d + 4, u) + (1 + gamma(d + 4, u)) * (gamma(d + 1, u) * kappa) ** 2
    if algorithm == "welford":
        return gamma(4 * (n + 4), u) * kappa + (gamma(n + 4, u) * kappa) ** 2
    if algorithm == "chan":
        levels = _levels(-(-n // block)) + block
        return gamma(5 * (levels + 4), u) * kappa + (gamma(levels + 4, u) * kappa) ** 2
    raise ValueError(f"the algorithms are {', '.join(ALGORITHMS)}; you asked for {algorithm!r}.")


# ----


def _round(x, dtype) -> np.ndarray:
    """Return x in ``dtype``, converted by way of float64 because NumPy cannot convert every pair of
    dtypes directly."""
    x = np.asarray(x)
    if x.ndim and x.shape[-1] == 0:
        raise ValueError(f"x has shape {x.shape}: a row without numbers has no mean.")
    return x if x.dtype == dtype else x.astype(np.float64).astype(dtype)


def _number(count, like: np.ndarray) -> np.ndarray:
    return np.asarray(count).astype(like.dtype)


def _levels(n: int) -> int:
    """Return ceil(log2 n): the number of halvings from n numbers to one."""
    return (n - 1).bit_length()


def _pad(x: np.ndarray, levels: int) -> np.ndarray:
    """Append zeros to the last axis, up to 2^levels elements."""
    return np.concatenate([x, np.zeros((*x.shape[:-1], 2**levels - x.shape[-1]), x.dtype)], axis=-1)
