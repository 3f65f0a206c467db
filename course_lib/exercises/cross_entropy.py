"""The cross entropy of long rows, forward and backward: the inputs that find its bugs, and its
wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case, name_cases
from course_lib.exercises.making import (
    PADDING,
    WRONG_STEPS,
    choose_strides,
    draw_matrix,
    list_dtype_models,
    make_expected,
    place_matrix,
    place_statistic,
    take_largest_lane,
    take_last_block,
    vary,
)
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.norms import reference

# Fills of this family. "largest first" and "largest last": that column is 300 larger than the
# others. "forbidden": the first block and every third column are -Inf.
LONG_ROWS = (
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


def _draw_logits(case: Case, rng: np.random.Generator) -> np.ndarray:
    x = draw_matrix(case, rng).astype(np.float64)
    if case.fill in ("largest first", "largest last"):
        x[:, 0 if case.fill == "largest first" else -1] += 300
    if case.fill == "forbidden":
        columns = np.arange(case.N)
        x[:, (columns < case.block * (case.block < case.N)) | (columns % 3 == 1)] = -np.inf
    return round_to(x, case.dtype_of("x"))


def _draw_target(case: Case, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the target of each row, (M,): in row 0 the last column that is not -Inf, in row 1 the
    first one."""
    columns = np.flatnonzero(x[0].astype(np.float64) > -np.inf)
    target = columns[rng.integers(len(columns), size=case.M)]
    if case.by_hand or case.fill == "worked":
        target = columns[(len(columns) - 1 - np.arange(case.M)) % len(columns)]
    target[0] = columns[-1]
    target[1:2] = columns[0]
    return target.astype(np.int64)


def _place_per_row(name: str, dtype: str, case: Case, values: np.ndarray) -> Tensor:
    return Tensor(name, dtype, (case.M,), (1,), values, guard=size_guard(case.rows))


def _plan_forward(
    case: Case, kernel: str, rng: np.random.Generator, reads: int | None = None
) -> Plan:
    """Plan a forward kernel. ``reads``: how often it may read x; None for as often as it likes."""
    x = _draw_logits(case, rng)
    target = _draw_target(case, x, rng)
    tensors = (
        place_matrix("x", case, x, spare=3), _place_per_row("target", "int64", case, target),
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


def _plan_backward(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    """Plan the backward kernel. The NaN of a bad row is in dloss: one in x would already be in lse.
    The dloss of row 3 is 0."""
    x = _draw_logits(replace(case, fill="normal") if case.has_bad_row else case, rng)
    target = _draw_target(case, x, rng)
    dloss = (
        np.arange(case.M) % 5 + 1.0
        if case.by_hand
        else rng.uniform(0.5, 2, size=case.M) * rng.choice([-1, 1], size=case.M)
    )
    if not case.by_hand:
        dloss[3:4] = 0
    if case.has_bad_row:
        dloss[1] = np.nan if case.fill == "nan row" else np.inf
    dloss, x64 = round_to(dloss, "fp32"), x.astype(np.float64)
    lse = round_to(reference.cross_entropy(x64, target).lse, "fp32")
    tensors = (
        _place_per_row("dloss", "fp32", case, dloss), place_matrix("x", case, x, spare=3),
        _place_per_row("target", "int64", case, target), _place_per_row("lse", "fp32", case, lse),
        place_matrix("dx", case, None, spare=9),
    )  # fmt: skip
    inputs = {
        "dloss": dloss.astype(np.float64),
        "x": x64,
        "target": target,
        "lse": lse.astype(np.float64),
    }
    return Plan(
        case, kernel, (case.M,), tensors,
        (*(t.name for t in tensors), tensors[1].strides[0], tensors[-1].strides[0], case.N),
        {"BLOCK": case.block}, {"dx": _expect_dx(case, inputs)}, inputs=inputs,
        reads={"x": 1, "dx": 0},
        spread=dict.fromkeys(("x", "dx"), case.M),
    )  # fmt: skip


def _expect_dx(case: Case, inputs: Outputs) -> Expected:
    """Return dx with its allowed errors: lse has a rounding error, which softmax takes over as a
    relative one."""
    x, dloss, lse = inputs["x"], inputs["dloss"][:, None], inputs["lse"][:, None]
    with np.errstate(invalid="ignore"):
        dx = reference.cross_entropy_vjp(inputs["dloss"], x, inputs["target"])
        softmax = np.exp(x - lse)
        unsure = np.where(softmax > 0, np.abs(np.where(softmax > 0, x, 0.0)) + np.abs(lse), 0.0) / 8
        terms = (
            np.abs(dloss) * (softmax * (1 + unsure) + _mark(inputs["target"], case.N)) + 2.0**-126
        )
    return make_expected(dx, terms, case.dtype_of("dx"), infinite=case.has_bad_row)


def _mark(target: np.ndarray, N: int) -> np.ndarray:
    """Return (M, N) with a 1 in the target's column of each row, and 0 elsewhere. A target outside
    of the row has no 1."""
    return (np.arange(N) == target[:, None]).astype(np.float64)


# ---- wrong formulas of the forward pass


def _find_largest(p: Plan) -> np.ndarray:
    return p.inputs["x"].max(axis=1)


def _compute_wrong(
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
_TARGETS: tuple[Callable[[Plan], np.ndarray], ...] = (
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


def _list_forward_models() -> Iterator[tuple[str, Model]]:
    wrong = partial(vary, _compute_wrong)
    yield from wrong("exp_overflow", largest=_SHIFTS)
    yield from wrong("lse_shift", added=[0.0, -1.0, 2.0])
    yield from wrong("log_base", log=[np.log2, np.log10])
    yield from wrong("log_base", exp=[np.exp2], log=[np.log, np.log2])
    yield from wrong("loss_formula", loss=_LOSSES)
    yield (
        "loss_formula",
        lambda p: (right := _compute_wrong(p)) | {"loss": right["loss"] / p.case.N},
    )
    yield (
        "loss_formula",
        lambda p: (right := _compute_wrong(p)) | {"loss": right["loss"] / p.case.M},
    )
    yield from wrong("target_misread", target=_TARGETS)
    yield "target_misread", _find_target_in_one_block
    yield from wrong("wrong_lse_saved", save=_SAVED)
    for cause, columns in WRONG_STEPS:
        yield cause, partial(_compute_wrong, columns=columns)
        yield cause, partial(_compute_wrong, columns=columns, largest=_find_largest)
    yield from wrong(
        "mask_missing",
        spare=[0.0, *(value for value in PADDING if value != -np.inf)],
        largest=[None, _find_largest],
    )
    yield "counted_by_every_lane", lambda p: _compute_wrong(p, times=p.case.block)
    yield "max_for_sum", _take_largest_lane
    yield "max_for_sum", lambda p: _finish(p, _find_largest(p), np.ones(p.case.M))
    yield from list_dtype_models(_compute_wrong, ("x",))
    yield (
        "same_row",
        lambda p: _compute_wrong(p, x=np.broadcast_to(p.inputs["x"][:1], p.inputs["x"].shape)),
    )


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
    right, target = _compute_wrong(p), p.inputs["target"]
    found = target >= take_last_block(p.case).start
    return right | {"loss": np.where(found, right["loss"], right["lse"])}


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


def _list_one_pass_models() -> Iterator[tuple[str, Model]]:
    yield from _list_forward_models()
    yield from vary(_merge_blocks, "sum_not_rescaled", merge=_MERGES)
    yield (
        "max_for_sum",
        lambda p: _merge_blocks(
            p,
            lambda s, before, after, block: (
                s * np.exp(before - after) + np.exp(block.max(axis=1) - after)
            ),
        ),
    )


# ---- wrong formulas of the backward pass


def _compute_wrong_dx(
    p: Plan, *, softmax: Callable | None = None, hot: float = 1.0,
    target: Callable[[Plan], np.ndarray] | None = None, of_hot: bool = True,
    of_softmax: bool = True, sign: int = 1, dloss: Callable[[Plan], np.ndarray] | None = None,
    every_block: bool = False,
) -> Outputs:  # fmt: skip
    """Return dx with something wrong in it.

    ``softmax``: what stands for it, of x and lse. ``hot``: what is subtracted in the target's
    column. ``of_hot`` and ``of_softmax``: whether dloss multiplies this term. ``every_block``: the
    target is compared with the number of the lane, not of the column.
    """
    x, lse = p.inputs["x"], p.inputs["lse"][:, None]
    first = np.exp(x - lse) if softmax is None else softmax(x, lse)
    mark = _mark(p.inputs["target"] if target is None else target(p) % p.case.N, p.case.N)
    if every_block:
        mark = _mark(p.inputs["target"], p.case.block)[:, np.arange(p.case.N) % p.case.block]
    scale = (p.inputs["dloss"] if dloss is None else dloss(p))[:, None]
    dx = sign * ((scale if of_softmax else 1) * first - (scale if of_hot else 1) * hot * mark)
    # fp32, so that it overflows where a kernel's does
    return {"dx": dx.astype(np.float32).astype(np.float64)}


_SOFTMAXES: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda x, lse: x - lse,
    lambda x, lse: np.exp((x + 0 * lse).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp((lse - x).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp((x + lse).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp2(x - lse),
    lambda x, lse: np.exp(x - x.max(axis=1, keepdims=True)),
    lambda x, lse: np.exp(x - lse) * (1 - np.exp(x - lse)),
    lambda x, lse: np.exp(x) / lse,
    lambda x, lse: 0 * x,
)


def _list_backward_models() -> Iterator[tuple[str, Model]]:
    wrong = partial(vary, _compute_wrong_dx)
    yield from wrong("onehot_misapplied", hot=[0.0, -1.0, 2.0])
    yield from wrong("onehot_misapplied", sign=[-1], hot=[1.0, -1.0])
    yield (
        "onehot_misapplied",
        lambda p: {
            "dx": np.where(
                _mark(p.inputs["target"], p.case.N),
                -p.inputs["dloss"][:, None],
                _compute_wrong_dx(p)["dx"],
            )
        },
    )
    yield from wrong("dloss_misapplied", of_hot=[True, False], of_softmax=[False])
    yield from wrong("dloss_misapplied", of_hot=[False])
    for dloss in (
        lambda p: np.full(p.case.M, p.inputs["dloss"][0]),
        lambda p: p.inputs["dloss"] / p.case.M,
        lambda p: p.inputs["dloss"] / p.case.N,
    ):
        yield "dloss_misapplied", partial(_compute_wrong_dx, dloss=dloss)
    yield from wrong("softmax_misread", softmax=_SOFTMAXES)
    yield (
        "statistics_of_another_row",
        lambda p: _compute_wrong_dx(
            replace(p, inputs=p.inputs | {"lse": 0 * p.inputs["lse"] + p.inputs["lse"][0]})
        ),
    )
    yield from wrong("target_misread", target=_TARGETS)
    yield from wrong("target_misread", every_block=[True])
    yield (
        "target_misread",
        lambda p: _compute_wrong_dx(
            p,
            target=lambda p: np.where(
                p.inputs["target"] < p.case.block, p.inputs["target"], p.case.N
            ),
        ),
    )
    yield from list_dtype_models(_compute_wrong_dx, ("x", "lse"))
    yield (
        "same_row",
        lambda p: _compute_wrong_dx(
            replace(
                p, inputs=p.inputs | {"x": np.broadcast_to(p.inputs["x"][:1], p.inputs["x"].shape)}
            )
        ),
    )


# ---- logits that nobody stores


@dataclass(frozen=True)
class LinearCase(Case):
    """Rows of h with ``K`` numbers each, of which the kernel takes ``block_k`` at a time; a logit
    is ``scale`` times a row of h times a row of w.

    The field ``mean`` is that of w. If it is not 0, or a fill asks for large logits, all of h is
    above 0.
    """

    K: int = 6
    block_k: int = 4
    scale: float = 0.5

    def describe(self) -> str:
        words = super().describe().replace(f"N = {self.N}", f"N = {self.N}, K = {self.K}", 1)
        return words.replace(
            f"BLOCK = {self.block}", f"BLOCK = {self.block}, BLOCK_K = {self.block_k}", 1
        )


_linear = partial(make_case, of=LinearCase)
LINEAR = (
    _linear("two full blocks", 4, 8, 4, "two full tiles of rows, two full blocks of columns",
        "any formula but the right one", rows=2, K=8),
    _linear("padded lanes", 5, 17, 8, "M, N and K are no multiples of ROWS, BLOCK and BLOCK_K",
        "a lane past the last column has the logit 0", rows=4, K=9, mean=-1.0),
    _linear("one short block", 3, 7, 16, "N below BLOCK, 9 padded lanes, K below BLOCK_K",
        "a row is taken to have a whole block at least", rows=2, K=3, mean=-0.5),
    _linear("one column", 3, 1, 4, "N = 1: softmax is 1, so the loss is 0",
        "the only column is taken for one of several", rows=2),
    _linear("K = 1", 3, 20, 8, "K = 1: a logit is one product",
        "the first number of h or w is left out", rows=2, K=1),
    _linear("one row, many asked", 1, 33, 16, "M = 1, ROWS = 8", rows=8, mean=0.0),
    _linear("many columns", 2, 600, 32, "19 blocks, the last one of 24 columns",
        "only the first blocks are added up", rows=2, K=5),
    _linear("many rows", 150, 10, 8, "38 programs of four rows", rows=4, mean=0.0),
    _linear("long sums", 2, 20, 8, "K = 70: 18 steps, the last one of two numbers",
        "a logit is the last step's sum", rows=2, K=70),
    _linear("small scale", 4, 40, 16, "scale = 0.01", "scale is left out", rows=2, scale=0.01,
        std=10.0),
    _linear("negative scale", 4, 40, 16, "scale = -2", "scale comes after the maximum", rows=2,
        scale=-2.0),
    _linear("large logits", 3, 40, 16, "logits of several thousands: exp of them is Inf",
        "exp is taken of the logits as they are", rows=2, scale=100.0, mean=10.0),
    _linear("logits far below 0", 3, 40, 16, "logits far below 0: exp of them is 0",
        "the maximum begins with 0", rows=2, scale=100.0, mean=-10.0),
    _linear("largest last", 3, 40, 16, "the last column of each row is far larger than the others",
        "the maximum of the first block is subtracted everywhere", rows=2, fill="largest last"),
    _linear("largest first", 3, 40, 16,
        "the first column of each row is far larger than the others",
        "the maximum of the last block is subtracted everywhere", rows=2, fill="largest first"),
    _linear("fp16", 3, 40, 16, "h and w in half precision",
        "products or sums are rounded to half precision", rows=2, K=33, mean=1.0),
    _linear("fp16, products above 65504", 3, 40, 16, "a product passes the largest number of fp16",
        "products are computed in fp16, and overflow", rows=2, K=5, dtype="fp16", std=3000.0,
        scale=1e-5),
    _linear("bf16", 3, 40, 16, "h and w in bfloat16", rows=2, K=33, mean=1.0),
    _linear("fp16 w", 3, 40, 16, "h in fp32, w in fp16", "h is rounded to the dtype of w", rows=2,
        dtypes=(("w", "fp16"),)),
    _linear("fp16 h", 3, 40, 16, "h in fp16, w in fp32", "w is rounded to the dtype of h", rows=2,
        dtypes=(("h", "fp16"),)),
    _linear("sliced", 5, 20, 8, "h and w are slices of wider matrices: two row strides",
        "K is taken for the distance between rows", rows=2, mean=0.0),
    _linear("a NaN row", 4, 19, 8, "row 1 of h holds a NaN: it must stay in row 1", rows=4),
    _linear("an Inf row", 4, 19, 8, "row 1 of h holds an Inf: it must stay in row 1", rows=4),
    _linear("far rows", 5, 6, 4, "rows of h and of w 1.5 * 2^30 elements apart", rows=4),
)  # fmt: skip


def _draw_linear(case: LinearCase, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw h (M, K) and w (N, K), rounded to their dtypes."""
    h = rng.normal(size=(case.M, case.K))
    w = case.mean + case.std * rng.normal(size=(case.N, case.K))
    if case.by_hand:
        h = by_hand.choose_residual(case.M, case.K) - 2
        w = by_hand.choose_sums(case.N, case.K, 3) - 4
    elif case.mean or case.fill.startswith("largest"):
        h = np.abs(h) + 0.5
    if case.fill.startswith("largest"):
        w[0 if case.fill == "largest first" else -1] += 600 / case.K
    if case.has_bad_row:
        h[1, case.K // 3] = np.nan if case.fill == "nan row" else np.inf
    return round_to(h, case.dtype_of("h")), round_to(w, case.dtype_of("w"))


def _place_rows(name: str, case: LinearCase, values: np.ndarray, spare: int) -> Tensor:
    strides, far = choose_strides(case.layout, values.shape, spare), case.layout == "far"
    rows = case.rows + case.block
    return Tensor(
        name,
        case.dtype_of(name),
        values.shape,
        strides,
        values,
        far,
        size_guard(case.block_k + (0 if far else rows * strides[0])),
    )


def _plan_linear(case: LinearCase, kernel: str, rng: np.random.Generator) -> Plan[LinearCase]:
    h, w = _draw_linear(case, rng)
    target = _draw_target(case, np.zeros((case.M, case.N)), rng)
    tensors = (
        _place_rows("h", case, h, spare=3), _place_rows("w", case, w, spare=5),
        _place_per_row("target", "int64", case, target),
        place_statistic("loss", case), place_statistic("lse", case),
    )  # fmt: skip
    h64, w64, programs = h.astype(np.float64), w.astype(np.float64), -(-case.M // case.rows)
    inputs = {"h": h64, "w": w64, "target": target}
    with np.errstate(invalid="ignore"):
        x = _compute_logits(h64, w64, case.scale)
        unsure = _compute_logits(np.abs(h64), np.abs(w64), abs(case.scale))
        want = reference.cross_entropy(x, target)
        # an error of a logit counts as much as its softmax
        of_row = (np.exp(x - want.lse[:, None]) * unsure).sum(axis=1)
        terms = 1 + of_row + (np.abs(x.max(axis=1)) + np.abs(want.lse)) / 8
        infinite = case.has_bad_row
        expected = {
            "loss": make_expected(
                want.loss, terms + unsure[np.arange(case.M), target], "fp32", infinite=infinite
            ),
            "lse": make_expected(want.lse, terms, "fp32", infinite=infinite),
        }
    arguments = (
        *(t.name for t in tensors),
        tensors[0].strides[0],
        tensors[1].strides[0],
        case.scale,
        case.M,
        case.N,
        case.K,
    )
    return Plan(
        case, kernel, (programs,), tensors, arguments,
        {"ROWS": case.rows, "BLOCK": case.block, "BLOCK_K": case.block_k}, expected,
        inputs=inputs, reads={"w": programs, "loss": 0, "lse": 0},
        spread=dict.fromkeys(("w", "loss"), programs),
    )  # fmt: skip


def _compute_logits(h: np.ndarray, w: np.ndarray, scale: float) -> np.ndarray:
    return scale * (h[:, None, :] * w[None, :, :]).sum(axis=2)


def _with_logits(p: Plan[LinearCase], x: np.ndarray | None = None) -> Plan[LinearCase]:
    """Return the plan with the logits as x, which are the right ones if there are no others."""
    return replace(
        p,
        inputs=p.inputs
        | {"x": _compute_logits(p.inputs["h"], p.inputs["w"], p.case.scale) if x is None else x},
    )


# wrong logits, of the plan, h and w
_LOGITS: tuple[
    tuple[str, Callable[[Plan[LinearCase], np.ndarray, np.ndarray], np.ndarray]], ...
] = (
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, 1.0)),
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, p.case.scale**2)),
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, 1 / p.case.scale)),
    ("scale_misapplied", lambda p, h, w: _scale_in_every_step(p, h, w)),
    ("product_misread", lambda p, h, w: _compute_logits(h, w, p.case.scale / p.case.K)),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(
            h[:, : p.case.block_k], w[:, : p.case.block_k], p.case.scale
        ),
    ),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(h[:, _last_step(p) :], w[:, _last_step(p) :], p.case.scale),
    ),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(
            h[:, : _full_steps(p)], w[:, : _full_steps(p)], p.case.scale
        ),
    ),
    ("product_misread", lambda p, h, w: p.case.scale * (h[:, None, :] + w[None, :, :]).sum(axis=2)),
    ("product_misread", lambda p, h, w: p.case.scale * (h[:, None, :] * w[None, :, :]).max(axis=2)),
    ("same_row", lambda p, h, w: _compute_logits(h[:1] + 0 * h, w, p.case.scale)),
)


def _scale_in_every_step(p: Plan[LinearCase], h: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the logits if scale multiplies, after each step, what has been added up so far."""
    x = np.zeros((len(h), len(w)))
    for at in range(0, p.case.K, p.case.block_k):
        step = slice(at, at + p.case.block_k)
        x = p.case.scale * (x + _compute_logits(h[:, step], w[:, step], 1.0))
    return x


def _last_step(p: Plan[LinearCase]) -> int:
    return (p.case.K - 1) // p.case.block_k * p.case.block_k


def _full_steps(p: Plan[LinearCase]) -> int:
    return p.case.K // p.case.block_k * p.case.block_k


def _scale_at_the_end(p: Plan[LinearCase]) -> Outputs:
    """Return the outputs if scale multiplies lse and the target's logit, and not the logits."""
    bare = _compute_wrong(_with_logits(p, _compute_logits(p.inputs["h"], p.inputs["w"], 1.0)))
    return {name: p.case.scale * values for name, values in bare.items()}


def _leave_the_targets_logit(p: Plan[LinearCase]) -> Outputs:
    """Return the outputs if scale does not multiply the target's logit alone."""
    right = _compute_wrong(_with_logits(p))
    bare = _compute_logits(p.inputs["h"], p.inputs["w"], 1.0)
    return right | {"loss": right["lse"] - bare[np.arange(p.case.M), p.inputs["target"]]}


def _list_linear_models() -> Iterator[tuple[str, Model]]:
    for cause, logits in _LOGITS:
        yield (
            cause,
            lambda p, logits=logits: _compute_wrong(
                _with_logits(p, logits(p, p.inputs["h"], p.inputs["w"]))
            ),
        )
    yield "scale_misapplied", _scale_at_the_end
    yield "scale_misapplied", _leave_the_targets_logit
    for cause, model in _list_one_pass_models():
        yield cause, lambda p, model=model: model(_with_logits(p))
    yield from list_dtype_models(lambda p: _compute_wrong(_with_logits(p)), ("h", "w"))


# ---- the entry points

FORWARD = name_cases("cross_entropy_kernel", LONG_ROWS)
BACKWARD = name_cases(
    "cross_entropy_dx_kernel",
    tuple(
        case
        for case in LONG_ROWS
        if case.name not in ("one full block", "bf16, 4096 equal chances", "largest first")
    ),
)
_FORBIDDEN = (("forbidden_columns", lambda p, outputs: p.case.fill == "forbidden"),)
PARTS = {
    "cross_entropy_kernel": Part(
        FORWARD,
        _plan_forward,
        _list_forward_models,
        rare=_FORBIDDEN,
        unwritten={"lse": "statistics_not_saved"},
    ),
    "cross_entropy_one_pass_kernel": Part(
        LONG_ROWS,
        partial(_plan_forward, reads=1),
        _list_one_pass_models,
        rare=_FORBIDDEN,
        unwritten={"lse": "statistics_not_saved"},
    ),
    "cross_entropy_dx_kernel": Part(
        BACKWARD, _plan_backward, _list_backward_models, rare=_FORBIDDEN
    ),
    "linear_cross_entropy_kernel": Part(
        LINEAR, _plan_linear, _list_linear_models, unwritten={"lse": "statistics_not_saved"}
    ),
}
