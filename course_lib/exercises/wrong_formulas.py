"""Pieces of wrong formulas that several exercises share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from course_lib.exercises.tensors import round_values
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan


def inverse_root(v, eps):
    return 1 / np.sqrt(v + eps)


# wrong formulas for 1 / sqrt(v + eps); v is the mean square or the variance
WRONG_ROOTS: tuple[tuple[str, Callable], ...] = (
    ("eps_outside", lambda v, eps: 1 / (np.sqrt(v) + eps)),
    # eps is inside and outside of the root
    ("eps_outside", lambda v, eps: 1 / (np.sqrt(v + eps) + eps)),
    ("eps_outside", lambda v, eps: 1 / np.sqrt(v) + eps),
    ("eps_outside", lambda v, eps: 1 / (np.sqrt(v) + np.sqrt(eps))),
    ("eps_outside", lambda v, eps: 1 / np.sqrt(v + eps) + eps),
    ("root_missing", lambda v, eps: 1 / (v + eps)),
    ("reciprocal_missing", lambda v, eps: np.sqrt(v + eps)),
    ("reciprocal_missing", lambda v, eps: v + eps),
    # the larger of the two instead of their sum
    ("eps_altered", lambda v, eps: 1 / np.sqrt(np.maximum(v, eps))),
    ("eps_altered", lambda v, eps: 1 / np.maximum(np.sqrt(v), eps)),
    ("eps_altered", lambda v, eps: 1 / np.sqrt(v + eps**2)),
    ("eps_altered", lambda v, eps: 1 / np.sqrt(v + np.sqrt(eps))),
    ("eps_altered", lambda v, eps: 1 / np.sqrt(v - eps)),
    ("eps_altered", lambda v, eps: 1 / np.sqrt(v * eps)),
    ("std_for_var", lambda v, eps: 1 / np.sqrt(np.sqrt(v) + eps)),
    *(
        ("eps_altered", lambda v, eps, least=least: 1 / np.sqrt(np.maximum(v, least) + eps))
        for least in (10.0**-n for n in range(2, 12))
    ),
    *(
        ("eps_altered", lambda v, eps, least=10.0**-n: 1 / np.sqrt(v + np.maximum(eps, least)))
        for n in range(3, 12)
    ),
)
# wrong values that a kernel can save in place of rstd
WRONGLY_SAVED: tuple[Callable, ...] = (
    lambda v, eps: v,
    lambda v, eps: v + eps,
    lambda v, eps: np.sqrt(v + eps),
    lambda v, eps: 1 / np.sqrt(v),
)
FIXED_EPS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3)
# wrong formulas for y; arguments: xhat, w and b; RMSNorm has b = 0
WRONG_SCALES: tuple[tuple[str, Callable], ...] = (
    ("w_ignored", lambda hat, w, b: hat + b),
    ("w_twice", lambda hat, w, b: hat * w * w + b),
    ("one_plus_w", lambda hat, w, b: hat * (1 + w) + b),
    ("w_misapplied", lambda hat, w, b: hat / w + b),
    ("w_misapplied", lambda hat, w, b: hat + w + b),
    ("w_misapplied", lambda hat, w, b: hat * np.abs(w) + b),
    ("w_misapplied", lambda hat, w, b: hat * np.where(w == 0, 1, w) + b),
    ("w_misapplied", lambda hat, w, b: hat * (w * w / w) + b),
    ("sign_of_deviation", lambda hat, w, b: -hat * w + b),
)
WRONG_SHIFTS: tuple[tuple[str, Callable], ...] = (
    ("b_ignored", lambda hat, w, b: hat * w),
    ("w_and_b_swapped", lambda hat, w, b: hat * b + w),
    ("b_misapplied", lambda hat, w, b: (hat + b) * w),
    ("b_misapplied", lambda hat, w, b: hat * w - b),
    ("b_misapplied", lambda hat, w, b: hat * w + 2 * b),
    ("b_misapplied", lambda hat, w, b: hat * w * b),
    ("w_for_b", lambda hat, w, b: hat * w + w),
    ("b_for_w", lambda hat, w, b: hat * b + b),
)


def square_deviation(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (x - mean) ** 2


def square_what_is_not_0(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the squared deviations, and 0 for an element that is 0: ``x != 0`` in the place of the
    mask."""
    return np.where(x == 0, 0.0, square_deviation(x, mean))


def square_lanes(block: int, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the squares of what the lanes have added up: each adds up its deviations, and is
    squared in the end."""
    return add_up_lanes(x - mean, block) ** 2


def apply_right(hat, w, b):
    return hat * w + b


FEW = tuple(2**n for n in range(2, 15))  # powers of two that may stand in place of a size
# causes, each with the columns to which a sum is wrongly limited
WRONG_COLUMNS: tuple[tuple[str, Callable[[Case], slice | np.ndarray]], ...] = (
    ("only_one_block", lambda case: slice(0, case.block)),
    ("elements_skipped", lambda case: slice(1, None)),
    ("tail_left_out", lambda case: slice(0, -1)),
    ("tail_left_out", lambda case: slice(0, case.N // case.block * case.block)),
    ("tail_left_out", lambda case: slice(0, case.N // 2)),
    ("tail_left_out", lambda case: slice(0, case.block // 2)),
    ("elements_skipped", lambda case: slice(case.block, None)),
    ("elements_skipped", lambda case: slice(None, None, 2)),
    # every other block is skipped
    ("elements_skipped", lambda case: np.flatnonzero(np.arange(case.N) // case.block % 2 == 0)),
    # a last block with one column is left out
    ("tail_left_out", lambda case: slice(0, case.N - (case.N % case.block == 1))),
    # the first block is left out where it is full
    ("elements_skipped", lambda case: slice(case.block if case.block <= case.N else 0, None)),
    # the last column of a block that is not full
    ("tail_left_out", lambda case: slice(0, case.N - (case.N % case.block > 0))),
    # the last block is left out, full or not
    ("tail_left_out", lambda case: slice(0, (case.N - 1) // case.block * case.block)),
    *(("tail_left_out", lambda case, most=most: slice(0, most)) for most in FEW),
    *(("tail_left_out", lambda case, most=most: slice(0, most * case.block)) for most in FEW),
    # the first block again and again, without and with the columns that the last block has not
    ("same_block", lambda case: np.arange(case.N) % case.block),
    (
        "same_block",
        lambda case: np.arange(-(-case.N // case.block) * min(case.block, case.N)) % case.block,
    ),
)


def take_last_block(case: Case) -> slice:
    return slice((case.N - 1) // case.block * case.block, None)


def take_same_block(case: Case, values: np.ndarray, first_block: bool, spare: float) -> np.ndarray:
    """Return (..., N) values of which every block of columns is the first one, or the last one,
    with ``spare`` past the last column."""
    columns = (0 if first_block else take_last_block(case).start) + np.arange(case.N) % case.block
    return np.where(columns < case.N, values[..., np.minimum(columns, case.N - 1)], spare)


# for take_same_block: the first block, or the last one, with 0 or NaN past the last column
SAME_BLOCKS = ((True, 0.0), (False, 0.0), (False, np.nan))


# the same as WRONG_COLUMNS, with one more cause: an accumulator that is overwritten in each block
WRONG_STEPS = (("block_not_accumulated", take_last_block), *WRONG_COLUMNS)
# values that a lane past the last column can hold instead of 0
PADDING = (1.0, -1.0, np.nan, np.inf, -np.inf)


def vary(
    compute: Callable[..., Outputs], cause: str, **choices: Iterable[Any]
) -> Iterator[tuple[str, Model]]:
    """Yield ``compute`` with each combination of the choices as its keyword arguments, all with the
    same cause."""
    for values in product(*choices.values()):
        yield cause, partial(compute, **dict(zip(choices, values, strict=True)))


def vary_by_cause(
    compute: Callable[..., Outputs], **choice: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, Model]]:
    """Yield ``compute`` with each value of a table of causes and values as a keyword argument, with
    its cause."""
    ((name, table),) = choice.items()
    for cause, value in table:
        yield cause, partial(compute, **{name: value})


def list_eps_models(compute: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield outputs with eps forgotten, in a wrong place, or replaced by a constant."""
    yield from vary(compute, "eps_missing", eps=[0.0])
    yield from vary_by_cause(compute, root=WRONG_ROOTS)
    yield from vary(compute, "eps_hard_coded", eps=FIXED_EPS)


def list_scaled_eps_models(
    compute: Callable[..., Outputs], in_blocks: bool = True
) -> Iterator[tuple[str, Model]]:
    """Yield outputs with eps divided or multiplied by N, or added once per lane of a block."""
    factors = [lambda case: 1 / case.N, lambda case: case.N]
    if in_blocks:
        factors.append(lambda case: case.block / case.N)
    for factor in factors:
        yield "eps_altered", lambda p, factor=factor: compute(p, eps=p.case.eps * factor(p.case))
    # eps is added to the divisor of the mean: sum / (N + eps)
    yield "eps_altered", lambda p: compute(p, root=partial(_add_eps_to_divisor, p.case.N))


def _add_eps_to_divisor(N: int, v: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt(v * N / (N + eps))


def change_inputs(p: Plan, **inputs: np.ndarray) -> Plan:
    """Return the plan with these inputs in the place of its own."""
    return replace(p, inputs=p.inputs | inputs)


def repeat_first_row(p: Plan, *names: str) -> Plan:
    """Return the plan with the first row of these inputs in every row."""
    return change_inputs(
        p, **{name: np.broadcast_to(p.inputs[name][:1], p.inputs[name].shape) for name in names}
    )


def list_dtype_models(
    compute: Callable[[Plan], Outputs], inputs: tuple[str, ...]
) -> Iterator[tuple[str, Model]]:
    """Yield outputs with one input rounded to a half-precision dtype, or to another input's.
    ``compute`` is the right formula."""
    for name, dtype in product(inputs, ("fp16", "bf16")):
        yield (
            "another_dtype",
            lambda p, name=name, dtype=dtype: compute(_round_input(p, name, dtype)),
        )
    for name in inputs:
        for other in inputs:
            if other != name:
                yield (
                    "another_dtype",
                    lambda p, name=name, other=other: compute(
                        _round_input(p, name, _find_dtype(p, other))
                    ),
                )


def list_rounded_outputs(
    compute: Callable[[Plan], Outputs], output: str, others: tuple[str, ...]
) -> Iterator[tuple[str, Model]]:
    """Yield outputs of which one is rounded to the dtype of another tensor before it is stored in
    its own."""
    for other in others:
        yield (
            "another_dtype",
            lambda p, other=other: (
                (right := compute(p)) | {output: round_values(right[output], _find_dtype(p, other))}
            ),
        )


def _find_dtype(p: Plan, name: str) -> str:
    return next((tensor.dtype for tensor in p.tensors if tensor.name == name), "fp32")


def _round_input(p: Plan, name: str, dtype: str) -> Plan:
    return change_inputs(p, **{name: round_values(p.inputs[name], dtype)})


def take_largest_lane(values: np.ndarray, block: int) -> np.ndarray:
    """Return for each row of (M, N) the largest of the lanes' sums, where the sum of all belongs;
    lane i has every ``block``-th column."""
    return add_up_lanes(values, block).max(axis=1)


def add_up_lanes(values: np.ndarray, block: int) -> np.ndarray:
    """Return for (M, N) in (M, block) what each lane has added up."""
    spare = np.zeros((len(values), -values.shape[1] % block))
    return np.concatenate([values, spare], axis=1).reshape(len(values), -1, block).sum(axis=1)


Add = Callable[[Case, np.ndarray], np.ndarray]  # (M, N) -> (M, 1), one sum per row


def add_up(case: Case, values: np.ndarray) -> np.ndarray:
    return values.sum(axis=1, keepdims=True)


def add_up_columns(columns: Callable[[Case], slice | np.ndarray]) -> Add:
    """Return a sum over some columns of each row."""
    return lambda case, values: add_up(case, values[:, columns(case)])


def add_up_largest_lane(case: Case, values: np.ndarray) -> np.ndarray:
    return take_largest_lane(values, case.block)[:, None]


def add_up_in_every_lane(case: Case, values: np.ndarray) -> np.ndarray:
    """Return the sum as often as a block has lanes: each lane has added the whole sum to its
    own."""
    return add_up(case, values) * case.block


SWEEPS = ("mean", "variance", "both")  # the sweeps whose sums can have a mistake
STEPS = (1, 2, 4, 8)  # how many blocks a step of a sweep may take at a time


def sweep_twice(
    p: Plan, *, x: np.ndarray | None = None, mean_divisor: str = "N", var_divisor: str = "N",
    padding: bool = False, other: float = 0.0, step: int = 1,
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray] = square_deviation, add: Add = add_up,
    sweeps: str = "both",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return mean and variance, in (M, 1) each, with something wrong in them.

    ``padding``: lanes past the last column are in the variance; ``other``: what they hold;
    ``step``: how many blocks a step takes.
    ``measure``: what is added up for the variance, of x and the mean. ``add``: how the mean, the
    variance, or both are added up, as ``sweeps`` says.
    """
    x = p.inputs["x"] if x is None else x
    spare = np.full((len(x), -p.case.N % (step * p.case.block)), other)
    total = (add_up if sweeps == "variance" else add)(p.case, x) + add_up(p.case, spare)
    mean = total / find_divisor(p, mean_divisor)
    squares = (add_up if sweeps == "mean" else add)(p.case, measure(x, mean))
    if padding:
        squares = squares + add_up(p.case, measure(spare, mean))
    return mean, squares / find_divisor(p, var_divisor)


# the term that the distance of two means adds to M2; arguments: the distance, the counts of both
# sides, and their sum
def add_between(d, a, b, n):
    return d**2 * a * b / n


def add_nothing(d, a, b, n):
    return 0 * d**2 * a * b / n


WRONG_BETWEEN = (
    add_nothing, lambda d, a, b, n: -(d**2) * a * b / n, lambda d, a, b, n: 2 * d**2 * a * b / n,
    lambda d, a, b, n: d * a * b / n, lambda d, a, b, n: d**2 * a * b, lambda d, a, b, n: d**2 / n,
    lambda d, a, b, n: d**2, lambda d, a, b, n: d**2 * b / n, lambda d, a, b, n: d**2 * a,
    lambda d, a, b, n: d**2 * b, lambda d, a, b, n: d**2 * a * b / n**2,
    lambda d, a, b, n: d**2 * b * b / n, lambda d, a, b, n: d**2 * a * a / n,
    lambda d, a, b, n: d**2 * a / n, lambda d, a, b, n: np.abs(d) * a * b / n,
    lambda d, a, b, n: d**2 * a * b / (n + 1),
)  # fmt: skip
# the part of the distance by which the mean moves; arguments: the same counts
WRONG_SHARES = (
    lambda a, b, n: 1 + b / n, lambda a, b, n: 0.5, lambda a, b, n: a / n, lambda a, b, n: -b / n,
    lambda a, b, n: b / (n + 1),
    lambda a, b, n: b / np.maximum(n - 1, 1), lambda a, b, n: b / np.maximum(a, 1), lambda a, b,
    n: b,
)  # fmt: skip


def share_between(share: Callable, side: int) -> Callable:
    return lambda d, a, b, n: d**2 * (b if side else a) * share(a, b, n)


Partials = tuple[np.ndarray, np.ndarray, np.ndarray]  # count, mean and M2 of parts


def merge_halves(
    parts: Partials,
    share: Callable = lambda a, b, n: b / n,
    between: Callable = add_between,
    least: int = 1,
    round_count: Callable[[np.ndarray], np.ndarray] = lambda n: n,
) -> Partials:
    """Merge (M, lanes) partials as the interpreter does, lane i with lane i + half, into (M, 1). A
    right merge does not depend on this order.

    ``share`` and ``between``: what a merge takes for the part of the distance by which the mean
    moves, and for the term of M2. ``least`` is the smallest count by which a merge divides.
    """
    n, mean, M2 = parts
    while n.shape[1] > 1:
        half = n.shape[1] // 2
        (n_a, n_b), (mean_a, mean_b), (M2_a, M2_b) = (
            (part[:, :half], part[:, half:]) for part in (n, mean, M2)
        )
        n, distance = round_count(n_a + n_b), mean_b - mean_a
        divisor = np.maximum(n, least)
        mean = mean_a + distance * share(n_a, n_b, divisor)
        M2 = M2_a + M2_b + between(distance, n_a, n_b, divisor)
    return n, mean, M2


def merge_one_by_one(
    parts: Iterable[tuple[Any, np.ndarray, np.ndarray]],
    after_the_move: bool = False,
    share: Callable = lambda a, b, n: b / n,
    between: Callable = add_between,
) -> tuple[np.ndarray, np.ndarray]:
    """Merge count, mean and M2 of each part into those of the parts before it, and return mean and
    M2. ``after_the_move``: the distance is taken from the mean that has moved already. ``share``
    and ``between``: as in :func:`merge_halves`."""
    n, mean, M2 = 0.0, np.zeros(()), np.zeros(())
    for count, of_part, squares in parts:
        total, distance = n + count, of_part - mean
        mean = mean + distance * share(n, count, total)
        left = of_part - mean if after_the_move else distance
        M2 = M2 + squares + between(left, n, count, total)
        n = total
    return mean, M2


def list_merge_models(merge: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield what ``merge`` makes of a wrong ``between`` or ``share``, which it takes."""
    yield from vary(merge, "merge_between", between=WRONG_BETWEEN)
    for share in WRONG_SHARES:
        # The term that the distance adds to M2 is right, or is computed from the wrong share, too.
        between = [add_between, share_between(share, 0), share_between(share, 1)]
        yield from vary(merge, "merge_weights", share=[share], between=between)


def stream_blocks(
    p: Plan,
    whole_means: str = "",
    whole_shares: bool = False,
    part_M2: Callable[[np.ndarray, int], np.ndarray] = lambda squares, length: squares,
    **of_merge: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance, in (M, 1) each, if block after block is merged with something
    wrong.

    ``whole_shares``: a last block that is not full has the share of a full one. ``whole_means``: so
    it has in its own mean, which is counted "from 0" or "from the first" element of the block.
    ``part_M2``: what stands for M2 of a block, of M2 and its columns. ``of_merge``: arguments of
    :func:`merge_one_by_one`.
    """
    x, block = p.inputs["x"], p.case.block
    parts = []
    for start in range(0, p.case.N, block):
        part = x[:, start : start + block]
        origin = part[:, :1] if whole_means == "from the first" else np.zeros((len(x), 1))
        length = block if whole_means else part.shape[1]
        mean = origin + (part - origin).sum(axis=1, keepdims=True) / length
        squares = part_M2(((part - mean) ** 2).sum(axis=1, keepdims=True), part.shape[1])
        parts.append((block if whole_shares else part.shape[1], mean, squares))
    mean, M2 = merge_one_by_one(parts, **of_merge)
    return mean, M2 / p.case.N


def list_stream_models(compute: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield what ``compute`` makes of the wrong statistics of :func:`stream_blocks`, whose
    arguments it takes."""
    yield from vary(
        compute, "short_chunk", whole_means=["from 0", "from the first"], whole_shares=[False, True]
    )
    yield from vary(compute, "short_chunk", whole_shares=[True])
    yield from vary(compute, "merge_between", after_the_move=[True])
    yield from list_merge_models(compute)
    yield from vary(compute, "M2_not_a_sum", part_M2=[lambda squares, length: squares / length])


def list_sweep_models(compute: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield what ``compute`` makes of statistics with a mistake in one of two sweeps. It takes the
    arguments of :func:`sweep_twice`."""
    # each block is compared with N, not with what is left of the row
    yield "padding_in_variance", lambda p: compute(p, padding=p.case.block < p.case.N)
    # the second sweep reads nothing: it begins at the end of the row
    yield from vary(compute, "elements_skipped", measure=[lambda x, mean: 0 * x + mean**2])
    yield from vary(compute, "not_divided", measure=[lambda x, mean: (x - mean * x.shape[1]) ** 2])
    # the last column is loaded as 0, and counts
    yield "tail_left_out", lambda p: compute(p, x=_zero_last_column(p.inputs["x"]))


def _zero_last_column(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[:, :-1], 0 * x[:, -1:]], axis=1)


def list_from_first(models: Iterable[tuple[str, Model]]) -> Iterator[tuple[str, Model]]:
    """Yield the models of kernels that subtract the first element of each row from x, and add it
    to the saved mean."""
    for cause, model in models:
        yield cause, partial(_count_from_first, model)


def _count_from_first(model: Model, p: Plan) -> Outputs:
    first = p.inputs["x"][:, 0]
    out = model(change_inputs(p, x=p.inputs["x"] - first[:, None]))
    return out | {"mean": out["mean"] + first}


def average_over_tile(short: bool) -> Add:
    """Return the mean of the sums of all rows of a program; ``short``: a last tile with fewer rows
    counts as full."""

    def add(case: Case, values: np.ndarray) -> np.ndarray:
        sums = add_up(case, values)
        tiles = [sums[at : at + case.rows] for at in range(0, len(sums), case.rows)]
        return np.concatenate(
            [np.full_like(tile, tile.sum() / (case.rows if short else len(tile))) for tile in tiles]
        )

    return add


def list_divisor_models(compute: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    """Yield mean and variance with wrong divisors, without and with the padded lanes in the
    variance."""
    wrong, padding = ("BLOCK", "lanes", "1", "N^2"), (False, True)
    yield from vary(compute, "divisor", mean_divisor=["N"], var_divisor=wrong, padding=padding)
    yield from vary(
        compute, "divisor", mean_divisor=wrong, var_divisor=["N", *wrong], padding=padding
    )


def find_divisor(p: Plan, which: str) -> float | np.ndarray:
    """Return the number by which a sum is divided, or for "not 0" one number per row: how many
    elements are not 0."""
    N, block = p.case.N, p.case.block
    if which == "not 0":
        return np.maximum((p.inputs["x"] != 0).sum(axis=1, keepdims=True), 1)
    return np.float64(
        {
            "N": N,
            "N-1": N - 1,
            "N-1 or 1": max(N - 1, 1),
            "BLOCK": block,
            "lanes": N + p.case.padded_lanes,
            "1": 1,
            "M": p.case.M,
            "ROWS": p.case.rows,
            "N^2": N * N,
        }[which]
    )
