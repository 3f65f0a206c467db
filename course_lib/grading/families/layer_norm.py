"""LayerNorm forward, in one block, blocked and resident: the inputs that find its bugs, and its wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.grading.families.making import (
    FIXED_EPS,
    PADDING,
    WRONG_COLUMNS,
    WRONG_ROOTS,
    WRONG_SCALES,
    WRONG_SHIFTS,
    apply_right,
    draw_matrix,
    draw_shift,
    draw_weight,
    find_divisor,
    inverse_root,
    list_dtype_models,
    list_far_out,
    list_rounded_outputs,
    make_expected,
    place_matrix,
    place_statistic,
    place_vector,
    square_what_is_not_0,
    take_largest_lane,
)
from course_lib.norms import reference

# Each line is one row of work a program; cheap in the interpreter because M is small and N costs little.
LAYER_NORM_BLOCKED = (
    Case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks", fill="worked"),
    Case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3", mean=3.0),
    Case("one short block", 3, 7, 16, "N below BLOCK, 9 padded lanes, mean -2", mean=-2.0),
    Case("one column", 2, 1, 16, "N = 1: the variance is 0, so y is b"),
    Case("one row", 1, 129, 128, "M = 1, one column in the second block", mean=1.0),
    Case("many blocks", 2, 1000, 64, "16 blocks, 24 padded lanes, mean 3", mean=3.0),
    Case("small spread", 3, 100, 128, "std 0.03: eps = 0.1 rules the result", std=0.03, eps=0.1, mean=0.5),
    Case("tiny eps", 3, 96, 32, "std 0.0001, eps = 1e-12", std=1e-4, eps=1e-12),
    Case("zeros", 4, 17, 8, "every third element of x is 0, and every fourth of w", mean=2.0, fill="zeros"),
    Case("constant row", 2, 20, 8, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 1000", 2, 768, 256, "the mean is 1000 times the spread", mean=1e3),
    Case("mean 10000", 2, 255, 64, "the mean is 10000 times the spread", mean=1e4),
    *list_far_out(3001, 512),
    Case("fp16", 3, 129, 64, "half precision in and out, mean 3", dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 1024, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case(
        "fp16, mean 8", 2, 1025, 512, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5
    ),
    Case("bf16", 3, 127, 128, "bfloat16 in and out, mean 3", dtype="bf16", mean=3.0),
    Case("fp32 weights", 2, 33, 16, "x in fp16, w and b in fp32", dtype="fp16", w_dtype="fp32"),
    Case("fp32 out", 2, 33, 16, "each tensor in a dtype of its own", dtypes=(("x", "fp16"), ("w", "bf16"))),
    Case(
        "fp32 in", 2, 33, 16, "each tensor in a dtype of its own", dtypes=(("y", "bf16"), ("w", "fp16"), ("b", "bf16"))
    ),
    Case("many rows", 150, 3, 16, "150 programs", mean=1.0),
    Case("16400 columns", 1, 16400, 256, "65 blocks, the last one of 16 columns", mean=1.0),
    Case(
        "sliced",
        4,
        50,
        16,
        "x and y are slices of wider matrices, so their row strides differ",
        mean=2.0,
        layout="sliced",
    ),
    Case("a NaN row", 4, 19, 8, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
    Case("an Inf row", 4, 19, 8, "row 1 holds an Inf: it must stay in row 1", fill="inf row"),
    Case(
        "far rows", 4, 17, 16, "rows 1.5 * 2^30 elements apart: the fourth starts past 2^32", dtype="fp16", layout="far"
    ),
)

LAYER_NORM_RESIDENT = (
    Case("worked example", 3, 8, 8, "the 3 x 8 worked example, one row a program", fill="worked"),
    Case("padded, mean 3", 5, 17, 32, "15 padded lanes, mean 3", mean=3.0),
    Case("two rows a program", 4, 16, 16, "no padding, two full tiles", rows=2, mean=1.0),
    Case("a row too many", 5, 12, 16, "M = 5 is no multiple of ROWS = 4", rows=4, mean=-2.0),
    Case("one row, many asked", 1, 30, 32, "M = 1, ROWS = 8", rows=8, mean=3.0),
    Case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", rows=2),
    Case("many rows", 150, 20, 32, "10 programs of 16 rows, the last one partly filled", rows=16, mean=1.0),
    Case("many programs", 299, 3, 16, "150 programs of two rows", rows=2, mean=1.0),
    Case("small spread", 3, 100, 128, "std 0.03: eps = 0.1 rules the result", rows=2, std=0.03, eps=0.1, mean=0.5),
    Case("tiny eps", 3, 96, 128, "std 0.0001, eps = 1e-12", rows=2, std=1e-4, eps=1e-12),
    Case("zeros", 4, 17, 32, "every third element of x is 0, and every fourth of w", rows=2, mean=2.0, fill="zeros"),
    Case("constant row", 2, 20, 32, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 1000", 2, 768, 1024, "the mean is 1000 times the spread", mean=1e3),
    Case("mean 10000", 2, 255, 256, "the mean is 10000 times the spread", rows=2, mean=1e4),
    *list_far_out(3001, 4096),
    Case("fp16", 3, 129, 256, "half precision in and out, mean 3", rows=2, dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 4096, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case(
        "fp16, mean 8", 2, 1025, 2048, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5
    ),
    Case("bf16", 3, 127, 128, "bfloat16 in and out, mean 3", rows=2, dtype="bf16", mean=3.0),
    Case("fp32 weights", 2, 33, 64, "x in fp16, w and b in fp32", rows=2, dtype="fp16", w_dtype="fp32"),
    Case("fp32 out", 2, 33, 64, "each tensor in a dtype of its own", rows=2, dtypes=(("x", "fp16"), ("w", "bf16"))),
    Case(
        "fp32 in",
        2,
        33,
        64,
        "each tensor in a dtype of its own",
        rows=2,
        dtypes=(("y", "bf16"), ("w", "fp16"), ("b", "bf16")),
    ),
    Case("8200 columns", 1, 8200, 16384, "more than 8192 columns", mean=1.0),
    Case(
        "sliced",
        5,
        50,
        64,
        "x and y are slices of wider matrices, so their row strides differ",
        rows=2,
        mean=2.0,
        layout="sliced",
    ),
    Case("a NaN row", 4, 19, 32, "row 1 holds a NaN: it must stay in row 1", rows=4, fill="nan row"),
    Case("an Inf row", 4, 19, 32, "row 1 holds an Inf: it must stay in row 1", rows=4, fill="inf row"),
    Case(
        "far rows",
        5,
        17,
        32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32",
        rows=4,
        dtype="fp16",
        layout="far",
    ),
)

# the learner's first LayerNorm: fp32, and only y is asked for
LAYER_NORM_ONE_BLOCK = (
    Case("worked example", 3, 8, 8, "the 3 x 8 worked example, no padded lane", fill="worked"),
    Case("five columns, mean 14", 2, 5, 8, "3 padded lanes, mean 14", mean=14.0, std=2.0),
    Case("padded, mean 3", 5, 17, 32, "15 padded lanes, mean 3", mean=3.0),
    Case("a wide block", 3, 6, 64, "58 padded lanes, mean -2", mean=-2.0),
    Case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", mean=1.0),
    Case("one row", 1, 129, 256, "M = 1, 127 padded lanes", mean=1.0),
    Case("many rows", 150, 3, 16, "150 programs", mean=1.0),
    Case("small spread", 3, 100, 128, "std 0.03: eps = 0.1 rules the result", std=0.03, eps=0.1, mean=0.5),
    Case("zeros", 4, 17, 32, "every third element of x is 0, and every fourth of w", mean=2.0, fill="zeros"),
    Case(
        "quiet",
        2,
        100,
        128,
        "std 0.0001, eps = 1e-12: whatever else is added to the variance shows",
        std=1e-4,
        eps=1e-12,
    ),
    Case("constant row", 2, 20, 32, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 1000", 2, 768, 1024, "the mean is 1000 times the spread", mean=1e3),
    *list_far_out(3001, 4096),
    Case("8200 columns", 1, 8200, 16384, "more than 8192 columns", mean=1.0),
    Case(
        "sliced",
        4,
        50,
        64,
        "x and y are slices of wider matrices, so their row strides differ",
        mean=2.0,
        layout="sliced",
    ),
    Case("a NaN row", 4, 19, 32, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
    Case("an Inf row", 4, 19, 32, "row 1 holds an Inf: it must stay in row 1", fill="inf row"),
)
_SAVED = ("mean", "rstd")  # what the other two kernels write beside y


def _make_plan(case: Case, kernel: str, rng: np.random.Generator, resident: bool) -> Plan:
    w_dtype = case.dtype_of("w")
    x, w, b = draw_matrix(case, rng), draw_weight(case, rng), draw_shift(case, rng)
    tensors = (
        place_matrix("x", case, x, spare=3), place_matrix("y", case, None, spare=9),
        place_vector("w", case, w_dtype, w), place_vector("b", case, case.dtype_of("b"), b),
        place_statistic("mean", case), place_statistic("rstd", case),
    )  # fmt: skip
    arguments = [("tensor", name) for name in ("x", "y", "w", "b", "mean", "rstd")]
    arguments += [("int", tensors[0].strides[0]), ("int", tensors[1].strides[0])]
    arguments += [("int", case.M)] * resident + [("int", case.N), ("float", case.eps)]
    with np.errstate(invalid="ignore"):
        want = reference.layer_norm(x, w, b, case.eps)
        w64, b64 = w.astype(np.float64), b.astype(np.float64)
        scale = 1 + np.abs(want.mean) * want.rstd
        x64 = x.astype(np.float64)
        expected = {
            "y": make_expected(
                want.y,
                scale[:, None] * np.abs(w64) + np.abs(b64) + np.abs(want.y),
                case.dtype_of("y"),
                infinite=case.fill == "inf row",
            ),
            "mean": make_expected(
                want.mean, np.abs(x64).mean(axis=1) + np.abs(want.mean), "fp32", free=case.has_bad_row
            ),
            "rstd": make_expected(want.rstd, scale * want.rstd, "fp32", free=case.has_bad_row),
        }
    return Plan(
        case, kernel, (-(-case.M // case.rows),), tensors, tuple(arguments), {"ROWS": case.rows, "BLOCK": case.block} if resident else {"BLOCK": case.block},
        expected, inputs={"x": x64, "w": w64, "b": b64}, reads={"x": 1 if resident else 3, "y": 0},
        spread=dict.fromkeys(("x", "y"), -(-case.M // case.rows)),
    )  # fmt: skip


def _plan_blocked(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    return _make_plan(case, kernel, rng, resident=False)


def _plan_resident(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    return _make_plan(case, kernel, rng, resident=True)


def _plan_one_block(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    whole = _make_plan(case, kernel, rng, resident=False)
    return replace(
        whole,
        tensors=tuple(tensor for tensor in whole.tensors if tensor.name not in _SAVED),
        arguments=tuple(argument for argument in whole.arguments if argument[1] not in _SAVED),
        expected={"y": whole.expected["y"]},
        reads={},
    )


def _list_models_of_y() -> Iterator[tuple[str, Model]]:
    """The wrong formulas that show in y."""
    for cause, model in _list_models():
        if cause not in ("wrong_statistic_saved", "outputs_swapped"):
            yield cause, lambda p, model=model: {"y": model(p)["y"]}


def _list_models() -> Iterator[tuple[str, Model]]:
    yield "padding_in_variance", lambda p: _compute_wrong(p, padding=True)
    for divisor in ("N-1", "N-1 or 1"):
        yield "unbiased_variance", lambda p, d=divisor: _compute_wrong(p, var_divisor=d)
    yield "eps_missing", lambda p: _compute_wrong(p, eps=0.0)
    for cause, root in WRONG_ROOTS:
        yield cause, lambda p, root=root: _compute_wrong(p, root=root)
    for fixed in FIXED_EPS:
        yield "eps_hard_coded", lambda p, fixed=fixed: _compute_wrong(p, eps=fixed)
    for times in (lambda p: 1 / p.case.N, lambda p: p.case.N, lambda p: p.case.block / p.case.N):
        yield "eps_altered", lambda p, times=times: _compute_wrong(p, eps=p.case.eps * times(p))
    for mean_divisor in ("N", "BLOCK", "lanes", "1"):
        for var_divisor in ("N", "BLOCK", "lanes", "1"):
            for padding in (False, True):
                if (mean_divisor, var_divisor) != ("N", "N"):
                    yield (
                        "divisor",
                        lambda p, m=mean_divisor, v=var_divisor, z=padding: _compute_wrong(
                            p, mean_divisor=m, var_divisor=v, padding=z
                        ),
                    )
    for cause, scale in (*WRONG_SCALES, *WRONG_SHIFTS):
        yield cause, lambda p, scale=scale: _compute_wrong(p, scale=scale)
    yield "zeros_left_out", lambda p: _compute_wrong(p, measure=square_what_is_not_0)
    for mean_divisor, measure in product(("N", "not 0"), (_square_deviation, square_what_is_not_0)):
        yield (
            "zeros_left_out",
            lambda p, d=mean_divisor, m=measure: _compute_wrong(p, mean_divisor=d, var_divisor="not 0", measure=m),
        )
    yield "zeros_left_out", lambda p: _compute_wrong(p, mean_divisor="not 0")
    yield "zeros_left_out", _leave_zeros_in_y
    yield "mean_not_subtracted", lambda p: _compute_wrong(p, centre=0.0)
    yield "mean_not_subtracted", lambda p: _compute_wrong(p, measure=lambda x, mean: x**2)
    yield "mean_not_subtracted", lambda p: _compute_wrong(p, centre=0.0, measure=lambda x, mean: x**2)
    yield "deviation_not_squared", lambda p: _compute_wrong(p, measure=lambda x, mean: np.abs(x - mean))
    yield "deviation_not_squared", lambda p: _compute_wrong(p, measure=lambda x, mean: 0 * x)
    for which in ("both", "mean", "variance"):
        yield "block_not_accumulated", lambda p, which=which: _compute_wrong(p, of=which, columns=_take_last_block)
        for cause, columns in WRONG_COLUMNS:
            yield cause, lambda p, columns=columns, which=which: _compute_wrong(p, of=which, columns=columns)
    for value, inside in product(PADDING, (False, True)):
        yield "mask_missing", lambda p, v=value, i=inside: _compute_wrong(p, other=v, padding=i)
    for names, (first, spare) in product(
        (("x",), ("w", "b"), ("w",), ("b",)), ((True, 0), (False, 0), (False, np.nan))
    ):
        yield "another_block", lambda p, n=names, f=first, s=spare: _take_from_block(p, n, f, s)
    yield "accumulator_reused", lambda p: _compute_wrong(p, measure=lambda x, mean: (x - mean) ** 2 + mean)
    for which in ("mean", "variance", "both"):
        yield "max_for_sum", lambda p, w=which: _compute_wrong(p, largest=w)
    for counted in ("mean", "variance", "both"):
        yield "counted_by_every_lane", lambda p, c=counted: _compute_wrong(p, every_lane=c)
    yield "squared_after_the_sum", lambda p: _compute_wrong(p, lanes=True)
    yield "divisor", lambda p: _compute_wrong(p, var_divisor="M")
    yield "divisor", lambda p: _compute_wrong(p, mean_divisor="M", var_divisor="M")
    yield "b_misapplied", lambda p: (right := _compute_wrong(p)) | {"y": _scale_shift_too(p, right["rstd"])}
    yield "rstd_not_applied", lambda p: _compute_wrong(p) | {"y": _apply_nothing(p)}
    for tile in (True, False):
        yield "statistics_of_another_row", lambda p, tile=tile: _share_statistics(p, tile)
    for of, short in product(("mean", "both"), (False, True)):
        yield "wrong_axis", lambda p, o=of, s=short: _compute_wrong(p, over_tile=o, short_tile=s)
    yield "w_misapplied", lambda p: _compute_wrong(p, scale=lambda hat, w, b: hat * _by_row(w, hat) + _by_row(b, hat))
    yield "w_misapplied", lambda p: _compute_wrong(p, scale=lambda hat, w, b: hat * w[0] + b)
    yield "w_misapplied", lambda p: _compute_wrong(p, scale=lambda hat, w, b: hat * w[0] + b[0])
    yield from list_dtype_models(_compute_wrong, ("x", "w", "b"))
    yield from list_rounded_outputs(_compute_wrong, "y", ("x", "w", "b"))
    yield "wrong_statistic_saved", lambda p: _compute_wrong(p, save=lambda v, eps: v)
    yield "wrong_statistic_saved", lambda p: _compute_wrong(p, save=lambda v, eps: v + eps)
    yield "wrong_statistic_saved", lambda p: _compute_wrong(p, save=lambda v, eps: np.sqrt(v + eps))
    yield "wrong_statistic_saved", lambda p: _compute_wrong(p, save=lambda v, eps: 1 / np.sqrt(v))
    yield "outputs_swapped", lambda p: dict(zip(("y", "rstd", "mean"), _compute_wrong(p).values(), strict=True))
    yield "same_row", lambda p: _compute_wrong(p, x=np.broadcast_to(p.inputs["x"][:1], p.inputs["x"].shape))


def _take_last_block(case: Case) -> slice:
    return slice((case.N - 1) // case.block * case.block, None)


def _average_tiles(values: np.ndarray, rows: int, short: bool) -> np.ndarray:
    """Each row's number replaced by the mean of those of its program's rows; ``short``: a last tile with fewer counts as full."""
    tiles = [values[at : at + rows] for at in range(0, len(values), rows)]
    return np.concatenate([np.full_like(tile, tile.sum() / (rows if short else len(tile))) for tile in tiles])


def _take_from_block(p: Plan, names: tuple[str, ...], first: bool, spare: float) -> Outputs:
    """y made of what the first block of columns, or the last, holds under these names; ``spare``: lanes past the last column."""
    start = 0 if first else _take_last_block(p.case).start
    columns = start + np.arange(p.case.N) % p.case.block
    taken = {
        name: np.where(columns < p.case.N, p.inputs[name][..., np.minimum(columns, p.case.N - 1)], spare)
        for name in names
    }
    x, w, b = (taken.get(name, p.inputs[name]) for name in ("x", "w", "b"))
    right = _compute_wrong(p)
    return right | {"y": apply_right((x - right["mean"][:, None]) * right["rstd"][:, None], w, b)}


def _by_row(w: np.ndarray, hat: np.ndarray) -> np.ndarray:
    return np.resize(w, len(hat))[:, None]


def _leave_zeros_in_y(p: Plan) -> Outputs:
    """The deviation of an element that is 0 is taken for 0, in the variance and in y."""
    wrong = _compute_wrong(p, measure=square_what_is_not_0)
    return wrong | {"y": np.where(p.inputs["x"] == 0, p.inputs["b"], wrong["y"])}


def _scale_shift_too(p: Plan, rstd: np.ndarray) -> np.ndarray:
    """b is added before rstd is applied."""
    return _apply_nothing(p) * rstd[:, None]


def _apply_nothing(p: Plan) -> np.ndarray:
    x = p.inputs["x"]
    return apply_right(x - x.mean(axis=1, keepdims=True), p.inputs["w"], p.inputs["b"])


def _share_statistics(p: Plan, tile: bool) -> Outputs:
    """y by the statistics of the first row: of the program's, or of all."""
    right, x = _compute_wrong(p), p.inputs["x"]
    rows = np.arange(len(x)) // p.case.rows * p.case.rows if tile else np.zeros(len(x), int)
    y = apply_right((x - right["mean"][rows][:, None]) * right["rstd"][rows][:, None], p.inputs["w"], p.inputs["b"])
    return right | {"y": y}


def _square_deviation(x, mean):
    return (x - mean) ** 2


def _compute_wrong(
    p: Plan, *, x=None, mean_divisor="N", var_divisor="N", padding=False, other=0.0, eps=None, root=inverse_root, save=None,
    scale=apply_right, centre=None, measure=_square_deviation, of="both", columns=None,
    every_lane="", lanes=False, over_tile="", short_tile=False, largest="",
) -> Outputs:  # fmt: skip
    """``padding``: lanes past the last column are in the variance; ``other``: what they hold. ``columns``: what goes into the
    mean, the variance, or both, as ``of`` says."""
    x, eps = p.inputs["x"] if x is None else x, p.case.eps if eps is None else eps
    some = x if columns is None else x[:, columns(p.case)]
    spare = np.full((len(x), p.case.padded_lanes), other)
    in_mean, in_var = some if of in ("both", "mean") else x, some if of in ("both", "variance") else x
    mean = (in_mean.sum(axis=1, keepdims=True) + spare.sum(axis=1, keepdims=True)) / find_divisor(p, mean_divisor)
    mean = mean * p.case.block if every_lane in ("mean", "both") else mean
    if largest in ("mean", "both"):
        mean = take_largest_lane(x, p.case.block)[:, None] / p.case.N
    mean = _average_tiles(mean, p.case.rows, short_tile) if over_tile else mean
    squares = measure(in_var, mean).sum(axis=1, keepdims=True)
    if lanes:  # each lane adds up its deviations, and is squared in the end
        padded = np.concatenate([x - mean, 0 * spare], axis=1)
        squares = (padded.reshape(len(x), -1, p.case.block).sum(axis=1) ** 2).sum(axis=1, keepdims=True)
    squares = squares * p.case.block if every_lane in ("variance", "both") else squares
    if largest in ("variance", "both"):
        squares = take_largest_lane(measure(x, mean), p.case.block)[:, None]
    squares = _average_tiles(squares, p.case.rows, short_tile) if over_tile == "both" else squares
    if padding:
        squares = squares + measure(spare, mean).sum(axis=1, keepdims=True)
    var = squares / find_divisor(p, var_divisor)
    rstd = root(var, eps)
    y = scale((x - (mean if centre is None else centre)) * rstd, p.inputs["w"], p.inputs["b"])
    return {"y": y, "mean": mean[:, 0], "rstd": (rstd if save is None else save(var, eps))[:, 0]}


PARTS = {
    "layer_norm_kernel": Part(LAYER_NORM_ONE_BLOCK, _plan_one_block, _list_models_of_y),
    "layer_norm_blocked_kernel": Part(LAYER_NORM_BLOCKED, _plan_blocked, _list_models),
    "layer_norm_resident_kernel": Part(LAYER_NORM_RESIDENT, _plan_resident, _list_models),
}
