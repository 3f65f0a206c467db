"""Mean and variance of streamed rows as kernels, in two sweeps and by Welford: inputs that find their bugs, wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.grading.families.making import (
    PADDING,
    WRONG_COLUMNS,
    add_up_lanes,
    draw_matrix,
    find_divisor,
    list_far_out,
    make_expected,
    place_matrix,
    place_statistic,
    square_what_is_not_0,
    take_largest_lane,
)
from course_lib.grading.judging import tolerance

_COMMON = (
    Case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks", fill="worked"),
    Case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3", mean=3.0),
    Case("one short block", 3, 7, 16, "N below BLOCK: 9 lanes never see an element, mean -2", mean=-2.0),
    Case("one full block", 3, 16, 16, "N equals BLOCK: one step, no padding", mean=1.0),
    Case(
        "some lanes empty",
        3,
        5,
        8,
        "N = 5 in 8 lanes: an empty lane always meets one that has seen an element",
        mean=-2.0,
    ),
    Case("one column", 2, 1, 16, "N = 1: the variance is 0, and 15 lanes never see an element", mean=2.0),
    Case("one row", 1, 129, 128, "M = 1, one column in the second block", mean=1.0),
    Case("many rows", 150, 3, 16, "150 programs", mean=1.0),
    Case("16400 columns", 1, 16400, 256, "65 blocks, the last one of 16 columns", mean=1.0),
    Case("bf16, mostly padding", 3, 9, 64, "55 padded lanes, mean 3", dtype="bf16", mean=3.0, std=0.25),
    Case("many blocks", 2, 1000, 64, "16 blocks, 24 padded lanes, mean 3", mean=3.0),
    Case("unequal lanes", 3, 9, 8, "lane 0 sees two elements, the others one", mean=1.0, std=2.0),
    Case("small spread", 3, 100, 32, "std 0.001 around 0", std=0.001),
    Case("constant row", 2, 40, 16, "the variance is 0, the mean is not", fill="constant", mean=100.5),
    Case("mean 1000", 8, 768, 256, "the mean is 1000 times the spread", mean=1e3),
    Case("mean 10000", 8, 255, 64, "the mean is 10000 times the spread", mean=1e4),
    *list_far_out(3001, 512),
    Case("fp16", 3, 129, 64, "half precision, mean 3", dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 1024, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case("fp16, mean 8", 2, 1025, 512, "sums need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5),
    Case("bf16", 3, 127, 32, "bfloat16, mean 3", dtype="bf16", mean=3.0),
    Case(
        "sliced", 4, 50, 16, "x is a slice of a wider matrix: rows are farther apart than N", mean=2.0, layout="sliced"
    ),
    Case("a NaN row", 4, 19, 8, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
    Case("an Inf row", 4, 19, 8, "row 1 holds an Inf: it must stay in row 1", fill="inf row"),
    Case(
        "far rows", 4, 17, 16, "rows 1.5 * 2^30 elements apart: the fourth starts past 2^32", dtype="fp16", layout="far"
    ),
)
TWO_PASS = _COMMON
WELFORD = (
    *_COMMON,
    Case(
        "mostly empty", 2, 5, 256, "N = 5 in 256 lanes: empty lanes merge with empty lanes, for many levels", mean=4.0
    ),
    Case(
        "bf16, 300 steps",
        1,
        1200,
        4,
        "a lane counts to 300: bf16 holds whole numbers up to 256",
        dtype="bf16",
        mean=1.0,
    ),
    Case(
        "fp16, 2100 steps",
        1,
        8400,
        4,
        "a lane counts to 2100, and its last element lies far out: fp16 holds whole numbers up to 2048",
        dtype="fp16",
        mean=1.0,
        fill="last far out",
    ),
    Case(
        "drifting lanes",
        3,
        200,
        64,
        "the mean of each lane differs from the mean of the row",
        std=3.0,
        mean=-1.0,
        fill="drifting",
    ),
)


def _plan_two_pass(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    """var: its own roundings, and the square of the mean's error, which the deviations contain."""
    return _plan_statistics(case, kernel, rng, lambda size, var: var + tolerance.K * tolerance.UNIT * size**2, sweeps=2)


def _plan_welford(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    """As two-pass, and the mean's error times a deviation: M2 is built on means that are still moving."""
    return _plan_statistics(
        case,
        kernel,
        rng,
        lambda size, var: var + size * np.sqrt(var) + tolerance.K * tolerance.UNIT * size**2,
        sweeps=1,
    )


def _plan_statistics(
    case: Case,
    kernel: str,
    rng: np.random.Generator,
    terms: Callable[[np.ndarray, np.ndarray], np.ndarray],
    sweeps: int,
) -> Plan:
    x = draw_matrix(case, rng)
    if case.fill == "drifting":  # a wave whose period is the block: what a lane sees is all alike
        x = (x + 8 * np.sin(2 * np.pi * np.arange(case.N) / case.block)).astype(x.dtype)
    tensors = (place_matrix("x", case, x, spare=3), place_statistic("mean", case), place_statistic("var", case))
    arguments = (*(("tensor", t.name) for t in tensors), ("int", tensors[0].strides[0]), ("int", case.N))
    x64 = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = x64.mean(axis=1)
        var = ((x64 - mean[:, None]) ** 2).mean(axis=1)
        size = np.abs(x64).mean(axis=1)
        infinite = case.fill == "inf row"  # its mean is Inf by one right algorithm and NaN by another
        expected = {
            "mean": make_expected(mean, size, "fp32", infinite=infinite),
            "var": make_expected(var, terms(size, var), "fp32", infinite=infinite),
        }
    return Plan(
        case, kernel, (case.M,), tensors, arguments, {"BLOCK": case.block}, expected, inputs={"x": x64}, reads={"x": sweeps},
        spread={"x": case.M, "mean": case.M},
    )  # fmt: skip


# ---- wrong formulas of both


def _save_statistics(mean: np.ndarray, var: np.ndarray) -> Outputs:
    return {"mean": mean, "var": var}


def _list_finishes() -> Iterator[tuple[str, Callable[[Plan, np.ndarray, np.ndarray], Outputs]]]:
    """Right mean and M2, and then something wrong: from (plan, mean, M2) to what is saved."""
    for least in (0, 1):
        yield (
            "unbiased_variance",
            lambda p, mean, M2, least=least: _save_statistics(mean, M2 / np.float64(max(p.case.N - 1, least))),
        )
    yield "zeros_left_out", lambda p, mean, M2: _take_what_is_not_0(p)
    yield (
        "zeros_left_out",
        lambda p, mean, M2: _save_statistics(
            mean, square_what_is_not_0(p.inputs["x"], mean[:, None]).sum(axis=1) / p.case.N
        ),
    )
    yield "not_divided", lambda p, mean, M2: _save_statistics(mean, M2)
    yield "not_divided", lambda p, mean, M2: _save_statistics(mean * p.case.N, M2 / p.case.N)
    yield "divisor", lambda p, mean, M2: _save_statistics(mean, M2 / find_divisor(p, "BLOCK"))
    yield "divisor", lambda p, mean, M2: _save_statistics(mean, M2 / find_divisor(p, "lanes"))
    yield "divisor", lambda p, mean, M2: _save_statistics(mean, M2 / (p.case.N + 1))
    yield "std_for_var", lambda p, mean, M2: _save_statistics(mean, np.sqrt(M2 / p.case.N))
    yield "rstd_for_var", lambda p, mean, M2: _save_statistics(mean, 1 / np.sqrt(M2 / p.case.N))
    for eps in (1e-5, 1e-6, 1e-8, 1e-12):
        yield "rstd_for_var", lambda p, mean, M2, eps=eps: _save_statistics(mean, 1 / np.sqrt(M2 / p.case.N + eps))
    yield "outputs_swapped", lambda p, mean, M2: _save_statistics(M2 / p.case.N, mean)


def _list_two_pass_models() -> Iterator[tuple[str, Model]]:
    for cause, finish in _list_finishes():
        yield cause, lambda p, finish=finish: finish(p, *_compute_sums(p))
    yield "padding_in_variance", lambda p: _sweep_twice(p, padding=True)
    for mean_divisor, var_divisor, padding in product(
        ("N", "BLOCK", "lanes", "1"), ("N", "BLOCK", "lanes", "1"), (False, True)
    ):
        if (mean_divisor, var_divisor) != ("N", "N"):
            yield "divisor", lambda p, m=mean_divisor, v=var_divisor, z=padding: _sweep_twice(p, m, v, z)
    for which, padding in product(("both", "mean", "variance"), (False, True)):
        yield (
            "block_not_accumulated",
            lambda p, w=which, z=padding: _sweep_twice(p, of=w, columns=_take_last_block, padding=z),
        )
        for cause, columns in WRONG_COLUMNS:
            yield cause, lambda p, c=columns, w=which, z=padding: _sweep_twice(p, of=w, columns=c, padding=z)
    for value, padding in product(PADDING, (False, True)):
        yield "mask_missing", lambda p, v=value, z=padding: _sweep_twice(p, other=v, padding=z)
    yield "padding_in_variance", _leave_rounded_mean_in_padding
    yield "squared_after_the_sum", _square_lanes
    yield (
        "accumulator_reused",
        lambda p: _save_statistics(_compute_sums(p)[0], _compute_sums(p)[1] / p.case.N + _compute_sums(p)[0]),
    )
    for by in ("N", "lane"):
        yield "lanes_apart", lambda p, by=by: _subtract_lane_means(p, by)
    for which in ("mean", "variance", "both"):
        yield "max_for_sum", lambda p, w=which: _take_largest(p, w)
    for which in ("mean", "variance", "both"):
        yield "counted_by_every_lane", lambda p, which=which: _count_in_every_lane(p, which)
    yield (
        "deviation_not_squared",
        lambda p: _save_statistics(_compute_sums(p)[0], np.abs(_compute_deviation(p)).mean(axis=1) ** 2),
    )
    yield (
        "mean_not_subtracted",
        lambda p: _save_statistics(p.inputs["x"].mean(axis=1), (p.inputs["x"] ** 2).mean(axis=1)),
    )
    yield (
        "deviation_not_squared",
        lambda p: _save_statistics(p.inputs["x"].mean(axis=1), np.abs(_compute_deviation(p)).mean(axis=1)),
    )
    yield "deviation_not_squared", lambda p: _save_statistics(p.inputs["x"].mean(axis=1), 0 * p.inputs["x"][:, 0])
    for sign in (1, -1):
        yield (
            "variance_terms",
            lambda p, s=sign: _save_statistics(
                p.inputs["x"].mean(axis=1), s * ((p.inputs["x"] ** 2).mean(axis=1) - p.inputs["x"].mean(axis=1))
            ),
        )


def _take_what_is_not_0(p: Plan) -> Outputs:
    """The statistics of the elements that are not 0."""
    x = p.inputs["x"]
    count = np.maximum((x != 0).sum(axis=1), 1)
    mean = x.sum(axis=1) / count
    return _save_statistics(mean, square_what_is_not_0(x, mean[:, None]).sum(axis=1) / count)


def _compute_deviation(p: Plan) -> np.ndarray:
    return p.inputs["x"] - p.inputs["x"].mean(axis=1, keepdims=True)


def _compute_sums(p: Plan) -> tuple[np.ndarray, np.ndarray]:
    """The right mean and M2."""
    return p.inputs["x"].mean(axis=1), (_compute_deviation(p) ** 2).sum(axis=1)


def _sweep_twice(
    p: Plan, mean_divisor: str = "N", var_divisor: str = "N", padding: bool = False, other: float = 0.0, of: str = "both", columns=None
) -> Outputs:  # fmt: skip
    """``padding``: lanes past the last column are in the variance; ``other``: what they hold. ``columns``: what goes into the
    mean, the variance, or both, as ``of`` says."""
    x = p.inputs["x"]
    some = x if columns is None else x[:, columns(p.case)]
    spare = np.full((len(x), p.case.padded_lanes), other)
    in_mean, in_var = some if of in ("both", "mean") else x, some if of in ("both", "variance") else x
    mean = (in_mean.sum(axis=1) + spare.sum(axis=1)) / find_divisor(p, mean_divisor)
    squares = ((in_var - mean[:, None]) ** 2).sum(axis=1)
    if padding:
        squares = squares + ((spare - mean[:, None]) ** 2).sum(axis=1)
    return _save_statistics(mean, squares / find_divisor(p, var_divisor))


def _square_lanes(p: Plan) -> Outputs:
    """Each lane adds up its deviations, and is squared in the end."""
    deviation = np.concatenate([_compute_deviation(p), np.zeros((p.case.M, p.case.padded_lanes))], axis=1)
    lanes = deviation.reshape(p.case.M, -1, p.case.block).sum(axis=1)
    return _save_statistics(_compute_sums(p)[0], (lanes**2).sum(axis=1) / p.case.N)


def _subtract_lane_means(p: Plan, by: str) -> Outputs:
    """Each lane subtracts what it has added up itself, divided by N or by its own count, in the place of the row's mean."""
    x, N, block = p.inputs["x"], p.case.N, p.case.block
    lanes = add_up_lanes(x, block) / (N if by == "N" else np.maximum(add_up_lanes(np.ones((1, N)), block), 1))
    deviation = x - lanes[:, np.arange(N) % block]
    return _save_statistics(x.mean(axis=1), (deviation**2).mean(axis=1))


def _take_largest(p: Plan, which: str) -> Outputs:
    x, N, block = p.inputs["x"], p.case.N, p.case.block
    mean = x.mean(axis=1) if which == "variance" else take_largest_lane(x, block) / N
    squares = (x - mean[:, None]) ** 2
    return _save_statistics(mean, squares.mean(axis=1) if which == "mean" else take_largest_lane(squares, block) / N)


def _count_in_every_lane(p: Plan, which: str) -> Outputs:
    x, block = p.inputs["x"], p.case.block
    mean = x.mean(axis=1) * (block if which in ("mean", "both") else 1)
    var = ((x - mean[:, None]) ** 2).mean(axis=1) * (block if which in ("variance", "both") else 1)
    return _save_statistics(mean, var)


def _take_last_block(case: Case) -> slice:
    return slice((case.N - 1) // case.block * case.block, None)


def _leave_rounded_mean_in_padding(p: Plan) -> Outputs:
    """Padded lanes loaded with other=mean: what they hold has been rounded to the dtype of x."""
    mean, M2 = _compute_sums(p)
    rounded = round_to(mean.astype(np.float32), p.tensor("x").dtype).astype(np.float64)
    return _save_statistics(mean, (M2 + p.case.padded_lanes * (rounded - mean) ** 2) / p.case.N)


# ---- wrong formulas of Welford


def _list_welford_models() -> Iterator[tuple[str, Model]]:
    for cause, finish in _list_finishes():
        yield cause, lambda p, finish=finish: finish(p, *_compute_sums(p))
    for factor in (0, -1, 2):
        yield (
            "merge_between",
            lambda p, f=factor: _merge_lanes(p, _run_lanes(p), between=lambda d, a, b, n: f * d**2 * a * b / n),
        )
    for between in (
        lambda d, a, b, n: d * a * b / n, lambda d, a, b, n: d**2 * a * b, lambda d, a, b, n: d**2 / n, lambda d, a, b, n: d**2,
        lambda d, a, b, n: d**2 * b / n, lambda d, a, b, n: d**2 * a, lambda d, a, b, n: d**2 * a * b / n**2,
        lambda d, a, b, n: d**2 * b * b / n, lambda d, a, b, n: d**2 * a * a / n, lambda d, a, b, n: d**2 * a / n,
        lambda d, a, b, n: np.abs(d) * a * b / n, lambda d, a, b, n: d**2 * a * b / (n + 1),
    ):  # fmt: skip
        yield "merge_between", lambda p, between=between: _merge_lanes(p, _run_lanes(p), between=between)
    for counted, moved, squared, by_count in product((False, True), (False, True), (False, True), (False, True)):
        if (counted or moved) and squared <= moved:
            cause = "mask_missing" if moved else "lane_counts"
            yield (
                cause,
                lambda p, c=counted, m=moved, s=squared, b=by_count: _merge_lanes(
                    p, _run_lanes(p, padding_counts=c, padding_moves=m, padding_squares=s), by_count=b
                ),
            )
    for share in (
        lambda a, b, n: 0.5, lambda a, b, n: a / n, lambda a, b, n: -b / n, lambda a, b, n: b / (n + 1),
        lambda a, b, n: b / np.maximum(n - 1, 1), lambda a, b, n: b / np.maximum(a, 1), lambda a, b, n: b,
    ):  # fmt: skip
        yield "merge_weights", lambda p, share=share: _merge_lanes(p, _run_lanes(p), share=share)
        for side in (0, 1):  # what the distance adds is made of the share, too
            between = _share_between(share, side)
            yield "merge_weights", lambda p, s=share, b=between: _merge_lanes(p, _run_lanes(p), share=s, between=b)
    for equal, factor, by_count in product((_count_equally, _count_one_each), (1, 0), (False, True)):
        yield (
            "merge_weights",
            lambda p, e=equal, f=factor, c=by_count: _merge_lanes(
                p, e(p, _run_lanes(p)), between=lambda d, a, b, n: f * d**2 * a * b / n, by_count=c
            ),
        )
    for lanes in (lambda p: p.case.block, lambda p: min(p.case.block, p.case.N)):
        yield "merge_weights", lambda p, lanes=lanes: _average_lane_means(p, lanes(p))
    for which in ("old", "new", "old, shared"):
        yield "welford_product", lambda p, which=which: _merge_lanes(p, _run_lanes(p, which))
    for count in (
        lambda k, p: k - 1,
        lambda k, p: k + 1,
        lambda k, p: p.case.N,
        lambda k, p: p.case.block,
        lambda k, p: 1,
        lambda k, p: -(-p.case.N // p.case.block),
    ):
        yield "welford_count", lambda p, count=count: _merge_lanes(p, _run_lanes(p, count=count))
    for by_count in (False, True):
        yield "block_not_accumulated", lambda p, b=by_count: _merge_lanes(p, _begin_anew(p), by_count=b)
        for cause, columns in WRONG_COLUMNS:
            yield cause, lambda p, c=columns, b=by_count: _merge_lanes(p, _run_lanes(p, columns=c), by_count=b)
    for dtype, of_lane, by_count in product(("fp16", "bf16"), (False, True), (False, True)):
        yield "low_precision", lambda p, d=dtype, o=of_lane, c=by_count: _count_in_half(p, d, o, c)
    yield "low_precision", lambda p: _count_in_half(p, p.tensor("x").dtype, True, False)
    yield "zeros_left_out", lambda p: _merge_lanes(p, _run_lanes(p, skip_zeros=True))
    yield "empty_lane", lambda p: _spoil_empty_lanes(p, _run_lanes(p))
    yield "empty_partial", lambda p: _merge_lanes(p, _run_lanes(p), least=0)
    for value in PADDING:
        yield (
            "mask_missing",
            lambda p, v=value: _merge_lanes(p, _run_lanes(p, padding_moves=True, padding_counts=True, other=v)),
        )
        yield "mask_missing", lambda p, v=value: _merge_lanes(p, _run_lanes(p, padding_moves=True, other=v))


Partials = tuple[np.ndarray, np.ndarray, np.ndarray]


def _run_lanes(
    p: Plan,
    which: str = "both",
    count: Callable = lambda k, p: k,
    padding_counts: bool = False,
    padding_moves: bool = False,
    padding_squares: bool = True,
    other: float = 0.0,
    columns: Callable[[Case], slice | np.ndarray] | None = None,
    round_count: Callable[[np.ndarray], np.ndarray] | None = None,
    skip_zeros: bool = False,
) -> Partials:
    """Count, mean and M2 of every lane, (M, BLOCK) each, by Welford with a slip: in the product, the count, the padding (which may
    move the mean alone, and not M2), or in which columns are taken."""
    x, block = p.inputs["x"], p.case.block
    x = x if columns is None else x[:, columns(p.case)]
    M, N = x.shape
    # shape (steps, M, BLOCK): the loop over the steps, of which a case may have thousands, does only what needs the step before
    blocks = np.concatenate([x, np.full((M, -N % block), other)], axis=1).reshape(M, -1, block).swapaxes(0, 1)
    inside = (np.arange(N + -N % block) < N).reshape(-1, 1, block) & ((blocks != 0) | (not skip_zeros))
    counts = _count_steps(inside | padding_counts, round_count)
    divisors = np.broadcast_to(np.maximum(count(counts[1:], p), 1.0), blocks.shape)
    moves = inside | padding_moves
    means = np.zeros((len(blocks) + 1, M, block))
    for k, (here, move, divisor) in enumerate(zip(blocks, moves, divisors, strict=True)):
        means[k + 1] = means[k] + np.where(move, here - means[k], 0.0) / divisor
    old, new = np.where(moves, blocks - means[:-1], 0.0), blocks - means[1:]
    squares = {"both": old * new, "old": old * old, "new": new * new, "old, shared": old * old / divisors}[which]
    M2 = np.where(inside | (padding_moves & padding_squares), squares, 0.0).sum(axis=0)
    return counts[-1], means[-1], M2


def _count_steps(taken: np.ndarray, round_count: Callable[[np.ndarray], np.ndarray] | None) -> np.ndarray:
    """Return the count of every lane before the first step and after each one, rounded in every step if ``round_count`` is given."""
    counts = np.zeros((len(taken) + 1, *taken.shape[1:]))
    if round_count is None:
        np.cumsum(taken, axis=0, out=counts[1:])
        return counts
    for k, here in enumerate(taken):
        counts[k + 1] = round_count(counts[k] + here)
    return counts


def _average_lane_means(p: Plan, lanes: int) -> Outputs:
    """The right var, beside a mean in which every lane counts alike."""
    means = _run_lanes(p)[1]
    return _save_statistics(means.sum(axis=1) / lanes, _compute_sums(p)[1] / p.case.N)


def _count_equally(p: Plan, lanes: Partials) -> Partials:
    return np.full_like(lanes[0], -(-p.case.N // p.case.block)), lanes[1], lanes[2]


def _count_one_each(p: Plan, lanes: Partials) -> Partials:
    return np.ones_like(lanes[0]), lanes[1], lanes[2]


def _begin_anew(p: Plan) -> Partials:
    """What the lanes hold if they begin anew with every block."""
    x, block = p.inputs["x"], p.case.block
    last = x[:, (x.shape[1] - 1) // block * block :]
    empty = np.zeros((x.shape[0], block - last.shape[1]))
    return (
        np.concatenate([np.ones_like(last), empty], axis=1),
        np.concatenate([last, empty], axis=1),
        np.zeros((x.shape[0], block)),
    )


def _share_between(share: Callable, side: int) -> Callable:
    return lambda d, a, b, n: d**2 * (b if side else a) * share(a, b, n)


def _merge_lanes(
    p: Plan, lanes: Partials, *, share: Callable = lambda a, b, n: b / n, between: Callable = lambda d, a, b, n: d**2 * a * b / n, by_count: bool = False,
    least: int = 1, round_count: Callable[[np.ndarray], np.ndarray] = lambda n: n,
) -> Outputs:  # fmt: skip
    """The lanes merged as the interpreter's tree does it, lane i with lane i + half. A right merge does not depend on the tree,
    and divides by a count of ``least`` at least."""
    n, mean, M2 = lanes
    while n.shape[1] > 1:
        half = n.shape[1] // 2
        (n_a, n_b), (mean_a, mean_b), (M2_a, M2_b) = ((part[:, :half], part[:, half:]) for part in (n, mean, M2))
        n, d = round_count(n_a + n_b), mean_b - mean_a
        some = np.maximum(n, least)
        mean, M2 = mean_a + d * share(n_a, n_b, some), M2_a + M2_b + between(d, n_a, n_b, some)
    return _save_statistics(mean[:, 0], M2[:, 0] / (n[:, 0] if by_count else p.case.N))


def _count_in_half(p: Plan, dtype: str, of_lane: bool, by_count: bool) -> Outputs:
    """Counts rounded to a dtype: of each lane while it counts, or of the two sides together in every merge."""

    def round_count(n: np.ndarray) -> np.ndarray:
        return round_to(n, dtype).astype(np.float64)

    if of_lane:
        return _merge_lanes(p, _run_lanes(p, round_count=round_count), by_count=by_count)
    return _merge_lanes(p, _run_lanes(p), round_count=round_count, by_count=by_count)


def _spoil_empty_lanes(p: Plan, lanes: Partials) -> Outputs:
    """A lane that has seen nothing divides by its count, and a NaN stays in every merge."""
    n, mean, M2 = lanes
    return _merge_lanes(p, (n, np.where(n > 0, mean, np.nan), M2))


PARTS = {
    "two_pass_kernel": Part(TWO_PASS, _plan_two_pass, _list_two_pass_models),
    "welford_kernel": Part(
        WELFORD,
        _plan_welford,
        _list_welford_models,
    ),
}
