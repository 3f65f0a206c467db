"""What the cross entropies of rows share: cases, the plan of the forward pass, and wrong
formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import draw_matrix, place_matrix, place_statistic
from course_lib.exercises.wrong_formulas import (
    PADDING,
    WRONG_STEPS,
    list_dtype_models,
    repeat_first_row,
    take_largest_lane,
    take_last_block,
    vary,
)
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan
from course_lib.norms import reference

# Fills of these cases. "largest first" and "largest last": that column is 300 larger than the
# others. "forbidden": the first block and every third column are -Inf.
LONG_ROW_CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("padded lanes", 5, 17, 8, "7 padded lanes", "a lane past the last column counts",
        mean=-2.0),
    make_case("one short block", 3, 7, 16),
    make_case("one full block", 4, 16, 16),
    make_case("one column", 3, 1, 16, "N = 1: softmax is 1, so loss and dx are 0",
        "the only column is taken for one of several"),
    make_case("one row", 1, 129, 128, "M = 1, the target is alone in the second block",
        "the target is looked for in the first block"),
    make_case("square", 12, 12, 8),
    make_case("many blocks", 2, 1000, 64, mean=0.0),
    make_case("many rows", 1200, 20, 16),
    make_case("16400 columns", 2, 16400, 1024, "17 blocks, the last one of 16 columns", mean=1.0),
    make_case("large logits", 3, 50, 16, "logits around 10000: exp of them is Inf",
        "exp is taken of the logits as they are", mean=10000.0),
    make_case("logits far below 0", 3, 50, 16, "logits around -10000: exp of them is 0",
        "the maximum begins with 0, or is not subtracted", mean=-10000.0),
    make_case("largest last", 3, 70, 16,
        "the last column of each row is 300 larger than the others",
        "the maximum of the first block is subtracted everywhere", fill="largest last"),
    make_case("largest first", 3, 70, 16,
        "the first column of each row is 300 larger than the others",
        "the maximum of the last block is subtracted everywhere", fill="largest first"),
    make_case("wide", 3, 100, 32, "std 30: a few columns have nearly all of the probability",
        "exp(x) is divided by another number than its sum", std=30.0),
    make_case("forbidden columns", 3, 70, 16,
        "the first block and every third column are -Inf: their softmax is 0",
        "-Inf minus -Inf is NaN", fill="forbidden"),
    make_case("forbidden, far below 0", 3, 70, 16,
        "the first block is -Inf, and the others are around -10000",
        "the maximum stays 0 after a block of -Inf", mean=-10000.0, fill="forbidden"),
    make_case("fp16", 3, 129, 64, "x in half precision", "sums are kept in half precision"),
    make_case("bf16", 3, 127, 32, "x in bfloat16"),
    make_case("bf16, 4096 equal chances", 2, 4096, 256, "in bf16, 256 + 1 is 256",
        "the sum is kept in bf16", dtype="bf16", std=0.01),
    make_case("sliced", 4, 50, 16, "x is a slice of a wider matrix, whose gaps hold NaN"),
    make_case("a NaN row", 4, 19, 8),
    make_case("an Inf row", 4, 19, 8),
    make_case("far rows", 4, 17, 8),
)  # fmt: skip


def draw_logits(case: Case, rng: np.random.Generator) -> np.ndarray:
    x = draw_matrix(case, rng).astype(np.float64)
    if case.fill in ("largest first", "largest last"):
        x[:, 0 if case.fill == "largest first" else -1] += 300
    if case.fill == "forbidden":
        columns = np.arange(case.N)
        x[:, (columns < case.block * (case.block < case.N)) | (columns % 3 == 1)] = -np.inf
    return round_to(x, case.dtype_of("x"))


def draw_target(case: Case, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the target of each row, (M,): in row 0 the last column that is not -Inf, in row 1 the
    first one."""
    columns = np.flatnonzero(x[0].astype(np.float64) != -np.inf)
    target = columns[rng.integers(len(columns), size=case.M)]
    if case.by_hand or case.fill == "worked":
        target = columns[(len(columns) - 1 - np.arange(case.M)) % len(columns)]
    target[0] = columns[-1]
    target[1:2] = columns[0]
    return target.astype(np.int64)


def place_per_row(name: str, dtype: str, case: Case, values: np.ndarray) -> Tensor:
    return Tensor(name, dtype, (case.M,), (1,), values, guard=size_guard(case.rows))


def plan_forward(
    case: Case, kernel: str, rng: np.random.Generator, reads: int | None = None
) -> Plan:
    """Plan a forward kernel. ``reads``: how often it may read x; None for as often as it likes."""
    x = draw_logits(case, rng)
    target = draw_target(case, x, rng)
    tensors = (
        place_matrix("x", case, x, spare=3), place_per_row("target", "int64", case, target),
        place_statistic("loss", case), place_statistic("lse", case),
    )  # fmt: skip
    x64 = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        want = reference.cross_entropy(x64, target)
        # The bound is for a sum of N terms. Maximum and result are rounded a few times only, so
        # they weigh an eighth.
        terms = 1 + (np.abs(x64.max(axis=1)) + np.abs(want.lse)) / 8
        infinite = case.has_bad_row
        expected = {
            "loss": make_expected(
                want.loss, terms + np.abs(want.loss) / 8, "fp32", infinite=infinite
            ),
            "lse": make_expected(want.lse, terms, "fp32", infinite=infinite),
        }
    return Plan(
        case, kernel, (case.M,), tensors,
        (*(t.name for t in tensors), tensors[0].strides[0], case.N), {"BLOCK": case.block},
        expected,
        inputs={"x": x64, "target": target},
        reads={"loss": 0, "lse": 0} | ({} if reads is None else {"x": reads}),
        spread=dict.fromkeys(("x", "loss"), case.M),
    )  # fmt: skip


# ---- wrong formulas of the forward pass


def _find_largest(p: Plan) -> np.ndarray:
    return p.inputs["x"].max(axis=1)


def compute_wrong(
    p: Plan, *, x: np.ndarray | None = None, columns: Callable | None = None,
    spare: float | None = None,
    largest: Callable[[Plan], np.ndarray] | None = None, added: float = 1.0, exp: Callable = np.exp,
    log: Callable = np.log, times: int = 1,
    target: Callable[[Plan], np.ndarray] | None = None, loss: Callable = np.subtract,
    save: Callable | None = None,
) -> Outputs:  # fmt: skip
    """Return loss and lse with something wrong in them.

    ``columns``: those that are added up. ``spare``: what the padded lanes hold. ``largest``: what
    is subtracted from a row, and ``added`` times added back. ``loss``: a function of lse and the
    target's logit. ``save``: what is stored for lse, a function of the maximum, the sum and lse.
    The exponentials are fp32, as in a kernel, so that they overflow where a kernel's do.
    """
    x = p.inputs["x"] if x is None else x
    taken = x if columns is None else x[:, columns(p.case)]
    if spare is not None:
        taken = np.concatenate([taken, np.full((len(x), p.case.padded_lanes), spare)], axis=1)
    shift = taken.max(axis=1, initial=-np.inf) if largest is None else largest(p)
    total = times * exp((taken - shift[:, None]).astype(np.float32)).astype(np.float64).sum(axis=1)
    lse = added * shift + log(total)
    logit = x[np.arange(p.case.M), (p.inputs["target"] if target is None else target(p)) % p.case.N]
    return {"loss": loss(lse, logit), "lse": lse if save is None else save(shift, total, lse)}


# what may be subtracted in place of the maximum
_SHIFTS: tuple[Callable[[Plan], np.ndarray], ...] = (
    lambda p: np.zeros(p.case.M),
    lambda p: np.maximum(_find_largest(p), 0.0),
    lambda p: p.inputs["x"][:, 0],
    lambda p: p.inputs["x"].mean(axis=1),
    lambda p: p.inputs["x"].min(axis=1),
    lambda p: p.inputs["x"][:, : p.case.block].max(axis=1),
    lambda p: p.inputs["x"][:, take_last_block(p.case)].max(axis=1),
)
TARGETS: tuple[Callable[[Plan], np.ndarray], ...] = (
    lambda p: p.inputs["target"] + 1,
    lambda p: np.maximum(p.inputs["target"] - 1, 0),
    lambda p: np.full(p.case.M, p.inputs["target"][0]),
    lambda p: np.zeros(p.case.M, int),
    lambda p: np.arange(p.case.M),
    lambda p: p.inputs["target"] % p.case.block,
)
_LOSSES: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda lse, logit: logit - lse,
    lambda lse, logit: lse + logit,
    lambda lse, logit: lse,
    lambda lse, logit: -logit,
    lambda lse, logit: np.exp(logit - lse),
    lambda lse, logit: -np.exp(logit - lse),
    lambda lse, logit: 1 - np.exp(logit - lse),
)
_SAVED: tuple[Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda largest, total, lse: largest,
    lambda largest, total, lse: total,
    lambda largest, total, lse: np.log(total),
    lambda largest, total, lse: np.exp(lse),
    lambda largest, total, lse: -lse,
)


def list_forward_models() -> Iterator[tuple[str, Model]]:
    wrong = partial(vary, compute_wrong)
    yield from wrong("exp_overflow", largest=_SHIFTS)
    yield from wrong("lse_shift", added=[0.0, -1.0, 2.0])
    yield from wrong("log_base", log=[np.log2, np.log10])
    yield from wrong("log_base", exp=[np.exp2], log=[np.log, np.log2])
    yield from wrong("loss_formula", loss=_LOSSES)
    for count in (lambda case: case.N, lambda case: case.M):
        yield (
            "loss_formula",
            lambda p, count=count: (
                (right := compute_wrong(p)) | {"loss": right["loss"] / count(p.case)}
            ),
        )
    yield from wrong("target_misread", target=TARGETS)
    yield "target_misread", _find_target_in_one_block
    yield from wrong("wrong_lse_saved", save=_SAVED)
    for cause, columns in WRONG_STEPS:
        yield cause, partial(compute_wrong, columns=columns)
        yield cause, partial(compute_wrong, columns=columns, largest=_find_largest)
    yield from wrong(
        "mask_missing",
        spare=[0.0, *(value for value in PADDING if value != -np.inf)],
        largest=[None, _find_largest],
    )
    yield "counted_by_every_lane", lambda p: compute_wrong(p, times=p.case.block)
    yield "max_for_sum", _take_largest_lane
    yield "max_for_sum", lambda p: _finish(p, _find_largest(p), np.ones(p.case.M))
    yield from list_dtype_models(compute_wrong, ("x",))
    yield "same_row", lambda p: compute_wrong(repeat_first_row(p, "x"))
    yield from _list_merge_models()


def _finish(p: Plan, largest: np.ndarray, total: np.ndarray) -> Outputs:
    """Return loss and lse from the maximum and the sum of each row."""
    lse = largest + np.log(total)
    return {"loss": lse - p.inputs["x"][np.arange(p.case.M), p.inputs["target"]], "lse": lse}


def _take_largest_lane(p: Plan) -> Outputs:
    largest = _find_largest(p)
    return _finish(
        p, largest, take_largest_lane(np.exp(p.inputs["x"] - largest[:, None]), p.case.block)
    )


def _find_target_in_one_block(p: Plan) -> Outputs:
    """Return the outputs if the target's logit is only found in the last block, and is 0 else."""
    right, target = compute_wrong(p), p.inputs["target"]
    in_last_block = target >= take_last_block(p.case).start
    return right | {"loss": np.where(in_last_block, right["loss"], right["lse"])}


# ---- wrong formulas of a forward pass that merges block after block

# what the sum becomes with another block: of the sum so far, the maximum before and with the block,
# and the block
Merge = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _sum_exponentials(block: np.ndarray, largest: np.ndarray) -> np.ndarray:
    return np.exp((block - largest[:, None]).astype(np.float32)).astype(np.float64).sum(axis=1)


_MERGES: tuple[Merge, ...] = (
    lambda s, before, after, block: s + _sum_exponentials(block, after),
    lambda s, before, after, block: s + _sum_exponentials(block, block.max(axis=1)),
    lambda s, before, after, block: (
        s * np.exp(before - after) + _sum_exponentials(block, block.max(axis=1))
    ),
    lambda s, before, after, block: s * np.exp(after - before) + _sum_exponentials(block, after),
    lambda s, before, after, block: (
        np.where(s == 0, 0.0, s * np.exp(after - before)) + _sum_exponentials(block, after)
    ),
    lambda s, before, after, block: (s + _sum_exponentials(block, after)) * np.exp(before - after),
    lambda s, before, after, block: (
        s * np.exp(before - block.max(axis=1)) + _sum_exponentials(block, after)
    ),
    lambda s, before, after, block: s * before / after + _sum_exponentials(block, after),
)


def _merge_blocks(p: Plan, merge: Merge) -> Outputs:
    x = p.inputs["x"]
    largest, total = np.full(len(x), -np.inf), np.zeros(len(x))
    for start in range(0, p.case.N, p.case.block):
        block = x[:, start : start + p.case.block]
        after = np.maximum(largest, block.max(axis=1))
        if np.isfinite(after).all():  # nothing has been added up while all columns are -Inf
            # 0 and Inf where fp32 has them
            total = merge(total, largest, after, block).astype(np.float32).astype(np.float64)
        largest = after
    return _finish(p, largest, total)


def _merge_lanes(p: Plan, in_lanes: bool, between_lanes: bool) -> Outputs:
    """Return loss and lse if each lane has a maximum and a sum of its own, and the sum is brought
    to the newest maximum of its lane, to the largest of all lanes, to both, or to neither."""
    x, block = p.inputs["x"], p.case.block
    spare = np.full((len(x), -p.case.N % block), -np.inf)
    steps = np.concatenate([x, spare], axis=1).reshape(len(x), -1, block)
    maxima = np.maximum.accumulate(steps, axis=1)
    newest, largest = maxima[:, -1], _find_largest(p)
    subtracted = newest[:, None] if in_lanes else maxima
    sums = np.exp(steps - np.where(subtracted == -np.inf, 0.0, subtracted)).sum(axis=1)
    weights = np.exp(newest - largest[:, None]) if between_lanes else 1.0
    return _finish(p, largest, (sums * weights).sum(axis=1))


def _list_merge_models() -> Iterator[tuple[str, Model]]:
    yield from vary(_merge_blocks, "sum_not_rescaled", merge=_MERGES)
    yield from vary(_merge_lanes, "sum_not_rescaled", in_lanes=[False], between_lanes=[True, False])
    yield from vary(_merge_lanes, "sum_not_rescaled", in_lanes=[True], between_lanes=[False])
    yield (
        "max_for_sum",
        lambda p: _merge_blocks(
            p,
            lambda s, before, after, block: (
                s * np.exp(before - after) + np.exp(block.max(axis=1) - after)
            ),
        ),
    )


def _has_only_forbidden_lanes(p: Plan, outputs: Outputs) -> bool:
    """Return True if a lane of the row may have seen nothing but -Inf, and this shows."""
    if p.case.fill == "forbidden":
        return True
    is_nan = any(np.isnan(values).any() for values in outputs.values())
    return is_nan and p.case.padded_lanes > 0 and p.case.one_block


FORBIDDEN = (("forbidden_columns", _has_only_forbidden_lanes),)
