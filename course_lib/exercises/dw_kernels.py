"""What the kernels for dw and db share, under a lock, in two stages and persistent: plans and wrong
formulas.

Programs share memory here, so a case is launched several times with its programs interleaved. This
finds races and deadlocks, and results whose bits depend on the order where they must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.gradients import (
    bound_terms,
    compute_hat,
    draw_backward_inputs,
    expect_dx,
    list_misread_models,
    place_by_rows,
    save_statistics,
)
from course_lib.exercises.tensors import place_statistic, place_vector, round_values, widen_inputs
from course_lib.exercises.wrong_formulas import FEW, change_inputs, list_dtype_models
from course_lib.grading.cases.buffers import Tensor, size_guard
from course_lib.grading.cases.case import FAR_STRIDE, SharedCase
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.norms import reference

# Rows of cases with GROUP buffers, with P programs of a grid, and with chunks of rows.
make_buffer_case = partial(make_case, case_class=SharedCase, partials_name="GROUP")

# In every case dy is normal with mean 0.5. The sums are those of buffers, chunks or programs, so
# few rows are enough. These are asked of each kernel whose programs share buffers, whatever makes
# them take turns.
SHARED_BUFFER_CASES = (
    make_buffer_case("fewer rows than buffers", 8, 20, 32,
        "{partials}: every row is the first of its buffer",
        "a buffer is added to before it is first written", mean=1.0, partials=11, orders=2),
    make_buffer_case("M no multiple of GROUP", 7, 12, 16,
        "{partials}: the first buffer takes three rows",
        "a buffer takes neighbouring rows", mean=-2.0, partials=3, orders=4),
    make_buffer_case("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, partials=4, orders=1),
    make_buffer_case("one column", 5, 1, 16, "N = 1, {partials}", "a column past N is written",
        partials=2),
    make_buffer_case("long row", 4, 1000, 1024, "{partials}, 24 padded lanes",
        "columns after the first block are left out", mean=3.0, partials=2),
    make_buffer_case("mean 1000", 4, 96, 128, "{partials}, the mean is 1000 times the spread",
        "xhat is computed from a rounded mean", partials=2),
    make_buffer_case("many rows", 20, 16, 16, "{partials}, more rows than run at once",
        "only the first rows are added up", partials=3),
    make_buffer_case("fp16", 16, 33, 64, "{partials}: 16 rows in half precision", partials=1),
    make_buffer_case("bf16", 6, 33, 64, "{partials}, bfloat16 in", partials=2),
    make_buffer_case("fp32 dy", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("x", "fp16"),), mean=3.0, partials=2, orders=1),
    make_buffer_case("fp32 x", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("dy", "bf16"),), mean=3.0, partials=2, orders=1),
    make_buffer_case("66 rows", 66, 3, 4, "{partials}, more than 64 rows and more than 64 buffers",
        "rows or buffers after the 64th are left out", mean=1.0, partials=66, orders=1),
    make_buffer_case("zeros", 5, 17, 32,
        "{partials}, 0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", partials=2, orders=1),
    make_buffer_case("far columns", 3, 4, 16,
        "{partials}, dy is transposed, its columns 1.5 * 2^30 elements apart", partials=2,
        orders=1),
    make_buffer_case("sliced", 5, 50, 64, "{partials}, dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", partials=2),
    make_buffer_case("expanded", 4, 50, 64, "{partials}, dy is one number with strides (0, 0)",
        partials=2),
    make_buffer_case("transposed", 5, 36, 64, "{partials}, dy is a transposed matrix", partials=2),
    make_buffer_case("a NaN row", 4, 19, 32,
        "{partials}, row 0 of dy begins with NaN, which must stay in buffer 0", partials=2),
    make_buffer_case("an Inf row", 4, 19, 32,
        "{partials}, dy holds an Inf in row 1: it must stay in buffer 1", partials=2, orders=1),
    make_buffer_case("far rows", 4, 17, 32, "{partials}, rows 1.5 * 2^30 elements apart", mean=1.0,
        partials=2),
)  # fmt: skip
PICTURE_CASE = make_buffer_case(
    "the tutorial's picture", 4, 8, 8,
    "{partials}: rows 0 and 2 share a buffer, rows 1 and 3 the other", "rows go to a wrong buffer",
    partials=2, orders=6,
)  # fmt: skip
LOCKED_CASES = (
    PICTURE_CASE,
    make_buffer_case("one buffer", 6, 17, 32, "{partials}: every row waits for every other",
        "a buffer is added to without its lock", mean=3.0, partials=1, orders=6),
    *SHARED_BUFFER_CASES,
)  # fmt: skip


# ---- plans


def _plan_locked(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    return replace(plan_by_words(case, kernel, rng, "lock", 2 * case.partials), any_order=True)


def plan_by_words(
    case: SharedCase, kernel: str, rng: np.random.Generator, name: str, words: int
) -> Plan[SharedCase]:
    """Plan the sums in GROUP buffers, with so many integers, 0 at the start, by which the programs
    take turns."""
    group = case.partials
    # only the buffers that are written
    mine = [np.arange(g, case.M, group) for g in range(min(group, case.M))]
    taking_turns = Tensor(
        name,
        "int32",
        (words,),
        (1,),
        np.zeros(words, np.int32),
        scratch=True,
        guard=size_guard(case.M),
    )
    plan = plan_backward(case, kernel, rng, mine, "buffer")
    plan = extend_plan(
        plan, [name, *list_strides(plan), case.N], {"GROUP": group, "BLOCK": case.block}
    )
    return replace(
        plan, grid=(case.M,), tensors=(*plan.tensors, taking_turns), resident=case.resident,
        spread={"x": case.M, "dw_buffer": case.M}
    )  # fmt: skip


def plan_backward(
    case: SharedCase,
    kernel: str,
    rng: np.random.Generator,
    mine: list[np.ndarray],
    ending: str,
    with_dx: bool = False,
) -> Plan[SharedCase]:
    """Plan dw and db over the rows of each element of ``mine``, and dx from w if ``with_dx``; the
    arguments are tensors alone."""
    dy, x, w = draw_backward_inputs(case, rng)
    saved = save_statistics(x, case.eps)
    room = size_guard((case.partials + 1) * case.N + case.block)
    tensors = [place_by_rows("dy", case, dy), place_by_rows("x", case, x)]
    tensors += [place_vector("w", case, w)] * with_dx
    tensors += [place_statistic(name, case, values) for name, values in saved.items()]
    tensors += [place_by_rows("dx", case, None)] * with_dx
    tensors += [
        Tensor(f"{name}_{ending}", "fp32", (len(mine), case.N), (case.N, 1), guard=room)
        for name in ("dw", "db")
    ]
    inputs = widen_inputs(tensors)
    expected = (
        {"dx": expect_dx(case, inputs, reference.layer_norm_vjp(dy, x, w, case.eps).dx)}
        if with_dx
        else {}
    )
    expected |= {
        f"{name}_{ending}": value for name, value in expect_sums(case, inputs, mine).items()
    }
    arguments = tuple(tensor.name for tensor in tensors)
    return Plan(
        case,
        kernel,
        (),
        tuple(tensors),
        arguments,
        {},
        expected,
        inputs=inputs,
        interleavings=case.orders,
    )


def list_strides(plan: Plan[SharedCase]) -> list[int]:
    """Return the arguments for the row and the column stride of dy, and for the row strides of x
    and dx."""
    return [
        *plan.tensor("dy").strides,
        *(tensor.strides[0] for tensor in plan.tensors if tensor.name in ("x", "dx")),
    ]


def plan_sum(
    case: SharedCase, kernel: str, rng: np.random.Generator, names: tuple[str, str], written: int
) -> Plan[SharedCase]:
    tensors, expected, inputs = [], {}, {}
    for name in names:
        shape = (case.partials, case.N)
        drawn = (
            by_hand.choose_sums(*shape, len(tensors))
            if case.by_hand
            else rng.normal(0.5, 4.0, size=shape)
        )
        values = drawn.astype(np.float32)
        values[written:] = np.nan
        whole = values[:written].astype(np.float64)
        inputs[name] = values.astype(np.float64)
        tensors.append(
            Tensor(
                name,
                "fp32",
                values.shape,
                (FAR_STRIDE if case.is_far else case.N, 1),
                values,
                case.is_far,
                size_guard(case.block if case.is_far else (case.rows + 1) * case.N + case.block),
            )
        )
        expected[name[:2]] = make_expected(
            whole.sum(axis=0), np.abs(whole).sum(axis=0), case.dtype_of(name[:2])
        )
    tensors += [
        Tensor(name, case.dtype_of(name), (case.N,), (1,), guard=size_guard(case.block))
        for name in expected
    ]
    arguments = tuple(tensor.name for tensor in tensors)
    return Plan(
        case,
        kernel,
        (-(-case.N // case.block),),
        tuple(tensors),
        arguments,
        {},
        expected,
        inputs=inputs,
        interleavings=case.orders,
        spread=dict.fromkeys(expected, -(-case.N // case.block)),
    )


def extend_plan(
    plan: Plan[SharedCase], arguments: list[str | int], constexprs: dict[str, int]
) -> Plan[SharedCase]:
    return replace(plan, arguments=(*plan.arguments, *arguments), constexprs=constexprs)


def list_chunks(case: SharedCase) -> list[np.ndarray]:
    return [
        np.arange(at, min(at + case.chunk, case.M))
        for at in range(0, case.partials * case.chunk, case.chunk)
    ]


def expect_sums(
    case: SharedCase,
    inputs: dict[str, np.ndarray],
    mine: list[np.ndarray],
    vjp: Callable = reference.layer_norm_vjp,
) -> dict[str, Expected]:
    """Return dw, and db if there is one, over the rows of each element of ``mine``, with the errors
    that fp32 may make in them."""
    dy, x, terms = inputs["dy"], inputs["x"], bound_terms(inputs)
    ones, nothing = np.ones(case.N), np.zeros(case.N)
    vjps = [vjp(dy[rows], x[rows], ones, case.eps) if rows.size else None for rows in mine]
    return {
        name: make_expected(
            np.stack([nothing if of_rows is None else getattr(of_rows, name) for of_rows in vjps]),
            np.stack([terms[name][rows].sum(axis=0) for rows in mine]),
            "fp32",
            infinite=case.fill == "inf row",
        )
        for name in (("dw", "db") if vjp is reference.layer_norm_vjp else ("dw",))
    }


# ---- wrong formulas

ChooseRows = Callable[[Plan[SharedCase]], list[np.ndarray]]
DW_MISTAKES = (
    *(
        ("xhat_wrong", {"dw": which})
        for which in ("x", "deviation", "scaled", "mean not scaled", "divided", "scaled twice")
    ),
    ("zeros_left_out", {"dw": "0 for 0"}),
    ("dw_without_xhat", {"dw": "ones"}),
    ("xhat_in_db", {"db": "xhat"}),
    ("rstd_in_db", {"db": "rstd"}),
    ("dw_and_db_swapped", {"dw": "ones", "db": "xhat"}),
    ("dy_ignored", {"dy": 0}),
    ("sign_of_dw_or_db", {"sign_dw": -1}),
    ("sign_of_dw_or_db", {"sign_db": -1}),
    ("sign_of_dw_or_db", {"sign_dw": -1, "sign_db": -1}),
)


def _take_steps(
    p: Plan[SharedCase], steps: Callable[[int, int], range], *, whole_steps: bool = False
) -> list[np.ndarray]:
    """Return the rows that each chunk adds up if it takes the steps that ``steps`` makes of (rows
    per chunk, BLOCK_M)."""
    case = p.case
    out = []
    for c in range(case.partials):
        within = [start + i for start in steps(case.chunk, case.rows) for i in range(case.rows)]
        if not whole_steps:
            within = [i for i in within if i < case.chunk]
        rows = np.array([c * case.chunk + i for i in within], dtype=int)
        out.append(rows[rows < case.M])
    return out


def _take_last_step(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of the last step: each step overwrites the sums of the one before. Lanes past
    M or the chunk add 0."""
    return _take_steps(p, lambda chunk, rows: range((chunk - 1) // rows * rows, chunk, rows))


def _take_own_last_step(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Do as :func:`_take_last_step`, where a chunk that M cuts short ends with its last row."""
    return [rows[(len(rows) - 1) // p.case.rows * p.case.rows :] for rows in list_chunks(p.case)]


def _begin_at_row_0(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return as many steps of rows as a chunk has, but from row 0 of the matrix, and not past the
    chunk's last row."""
    case = p.case
    steps = -(-case.chunk // case.rows) * case.rows
    return [np.arange(min(steps, (c + 1) * case.chunk, case.M)) for c in range(case.partials)]


def _skip_vanishing(p: Plan[SharedCase], mine: list[np.ndarray], hat: str) -> list[np.ndarray]:
    """Leave out the rows in which dy, or dy times xhat, has the sum 0."""
    sums = (p.inputs["dy"] * compute_hat(p.inputs, hat)).sum(axis=1)
    return [rows[sums[rows] != 0] for rows in mine]


def _repeat_rows(rows: np.ndarray, step: int) -> np.ndarray:
    """Return the rows with repetitions: a step of this many rows begins at every row, so most rows
    are in several steps."""
    return np.repeat(rows, np.minimum(np.arange(len(rows)) + 1, step))


def list_partial_choices(right: ChooseRows) -> list[tuple[str, ChooseRows]]:
    """List with their causes choices that leave out some of the right rows: of each program by
    number, or those whose sum vanishes."""
    return [
        *(
            (cause, lambda p, choose=choose: [choose(rows) for rows in right(p)])
            for cause, choose in _SOME_ROWS
        ),
        *(
            ("sum_of_zero", lambda p, hat=hat: _skip_vanishing(p, right(p), hat))
            for hat in ("ones", "xhat")
        ),
    ]


def list_right_chunks(p: Plan[SharedCase]) -> list[np.ndarray]:
    return list_chunks(p.case)


_SOME_ROWS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("rows_left_out", lambda rows: rows[1:]),
    ("rows_left_out", lambda rows: rows[:-1]),
    *(("rows_left_out", lambda rows, most=most: rows[:most]) for most in FEW),
)
CHUNK_ROWS: tuple[tuple[str, ChooseRows], ...] = (
    ("rows_not_summed", _take_last_step),
    ("rows_not_summed", _take_own_last_step),
    ("rows_not_summed", lambda p: _take_steps(p, lambda chunk, rows: range(0, rows, rows))),
    (
        "rows_counted_twice",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk, rows), whole_steps=True),
    ),
    (
        "rows_counted_twice",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk + 1, rows), whole_steps=True),
    ),
    (
        "rows_left_out",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk // rows * rows, rows)),
    ),
    ("same_rows", lambda p: [np.arange(min(p.case.chunk, p.case.M))] * p.case.partials),
    (
        "wrong_rows",
        lambda p: [clip_rows(p, c * p.case.rows, p.case.chunk) for c in range(p.case.partials)],
    ),
    ("wrong_rows", lambda p: [clip_rows(p, c, p.case.chunk) for c in range(p.case.partials)]),
    (
        "wrong_rows",
        lambda p: [np.arange(c, p.case.M, p.case.partials) for c in range(p.case.partials)],
    ),
    ("wrong_rows", _begin_at_row_0),
    (
        "rows_counted_twice",
        lambda p: [_repeat_rows(rows, p.case.rows) for rows in list_chunks(p.case)],
    ),
    *list_partial_choices(list_right_chunks),
)


def clip_rows(p: Plan[SharedCase], start: int, count: int) -> np.ndarray:
    return np.arange(min(start, p.case.M), min(start + count, p.case.M))


def _list_groups(p: Plan[SharedCase]) -> list[np.ndarray]:
    return [np.arange(g, p.case.M, p.case.partials) for g in range(min(p.case.partials, p.case.M))]


def list_locked_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield (
        "uninitialised",
        lambda p: {name: np.full_like(want.values, np.nan) for name, want in p.expected.items()},
    )
    rows = (("wrong_rows", _list_neighbours), *list_partial_choices(_list_groups))
    yield from combine_mistakes(DW_MISTAKES, rows, _list_groups, "buffer")
    yield from list_misplaced_models(lambda p: compute_wrong(p, _list_groups(p), "buffer"))


def _list_neighbours(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of each buffer if it takes neighbouring rows instead of every GROUP-th."""
    each = -(-p.case.M // p.case.partials)
    return [clip_rows(p, g * each, each) for g in range(min(p.case.partials, p.case.M))]


# rows whose statistics may stand for those of each row: those of the first chunk, the first row of
# the row's own chunk or step, row 0, or the row with the number of the row's buffer
_OTHER_ROWS: tuple[Callable[[np.ndarray, SharedCase], np.ndarray], ...] = (
    lambda rows, case: rows % (case.chunk or case.M),
    lambda rows, case: rows // (case.chunk or case.M) * (case.chunk or case.M),
    lambda rows, case: rows - rows % (case.chunk or case.M) % case.rows,
    lambda rows, case: rows % case.partials,
    lambda rows, case: 0 * rows,
)


def list_misplaced_models(
    compute: Callable[[Plan[SharedCase]], Outputs], names: tuple[str, ...] = ("mean", "rstd")
) -> Iterator[tuple[str, Model[SharedCase]]]:
    """Yield what ``compute``, the right formula, makes of the statistics of another row: of all of
    ``names``, or of one."""
    for taken, find in product(dict.fromkeys((names, *((name,) for name in names))), _OTHER_ROWS):
        yield (
            "statistics_of_another_row",
            lambda p, taken=taken, find=find: compute(
                change_inputs(
                    p, **{name: p.inputs[name][find(np.arange(p.case.M), p.case)] for name in taken}
                )
            ),
        )


def list_spare_row_models(right: ChooseRows) -> Iterator[tuple[str, Model[SharedCase]]]:
    """Yield sums in which a step loads dy as 1, NaN or Inf in rows that do not exist."""
    for value in (1.0, np.nan, np.inf):
        yield "row_mask", lambda p, v=value: _add_spare_rows(p, right(p), v)


def _add_spare_rows(p: Plan[SharedCase], mine: list[np.ndarray], value: float) -> Outputs:
    db = compute_wrong(p, mine, "partial")["db_partial"]
    spare = np.array([-len(rows) % p.case.rows for rows in mine], dtype=np.float64)
    return {"db_partial": db + np.where(spare > 0, spare * value, 0.0)[:, None]}


def combine_mistakes(
    formulas, rows: tuple[tuple[str, ChooseRows], ...], right: ChooseRows, ending: str
) -> Iterator[tuple[str, Model[SharedCase]]]:
    """Yield single mistakes, then pairs: one in the rows and one in the formula, under the cause of
    the rows."""
    for cause, take in rows:  # the mistake is in one of the two sums only
        for name in ("dw", "db"):
            yield (
                cause,
                lambda p, take=take, n=f"{name}_{ending}": {
                    n: compute_wrong(p, take(p), ending)[n]
                },
            )
    choices = [(r, f) for r, f in product((None, *rows), (None, *formulas)) if r or f]
    for of_rows, formula in sorted(
        choices, key=lambda chosen: sum(mistake is not None for mistake in chosen)
    ):
        named, changes = of_rows or formula, formula[1] if formula else {}
        assert named is not None  # the choice of no mistake at all was left out above
        yield (
            named[0],
            lambda p, take=of_rows[1] if of_rows else right, changes=changes: compute_wrong(
                p, take(p), ending, **changes
            ),
        )
    yield from list_misread_models(lambda p: compute_wrong(p, right(p), ending))
    yield "mean_for_sum", lambda p: compute_wrong(p, right(p), ending, mean=True)
    for name in ("dw", "db"):
        n = f"{name}_{ending}"
        yield from list_dtype_models(
            lambda p, n=n: {n: compute_wrong(p, right(p), ending)[n]}, ("x", "dy")
        )


def compute_wrong(
    p: Plan[SharedCase],
    mine: list[np.ndarray],
    ending: str,
    *,
    dw="xhat",
    db="ones",
    dy=1,
    w_dw=0,
    w_db=0,
    mean=False,
    sign_dw=1,
    sign_db=1,
) -> Outputs:
    out: Outputs = {}
    values = p.inputs["dy"] ** dy
    for name, hat, power, sign in (("dw", dw, w_dw, sign_dw), ("db", db, w_db, sign_db)):
        of_w = {
            0: 1.0,
            1: p.inputs.get("w"),
            "w / w": p.inputs["w"] / p.inputs["w"] if power else 1.0,
        }[power]
        terms = sign * values * compute_hat(p.inputs, hat) * of_w
        out[f"{name}_{ending}"] = np.stack(
            [terms[rows].sum(axis=0) / (max(len(rows), 1) if mean else 1) for rows in mine]
        )
    return out


def list_sum_models(
    count: Callable[[Plan[SharedCase]], int], left_out: str = "rows_left_out"
) -> Iterator[tuple[str, Model[SharedCase]]]:
    yield "rows_not_summed", lambda p: sum_rows(p, slice(count(p) - 1, count(p)))
    yield "rows_not_summed", lambda p: sum_rows(p, slice(0, 1))
    yield left_out, lambda p: sum_rows(p, slice(1, count(p)))
    yield left_out, lambda p: sum_rows(p, slice(0, count(p), 2))
    for most in FEW:
        yield left_out, lambda p, most=most: sum_rows(p, slice(0, min(most, count(p))))
    for name, other in (("dw", "db"), ("db", "dw")):
        yield (
            "another_dtype",
            lambda p, n=name, o=other: {
                n: (round_values(sum_rows(p, slice(0, count(p)))[n], p.tensor(o).dtype))
            },
        )
    yield left_out, lambda p: sum_rows(p, slice(0, max(count(p) - 1, 0)))
    yield "dw_and_db_swapped", lambda p: sum_rows(p, slice(0, count(p)), ("db", "dw"))
    yield "sums_of_the_other", lambda p: sum_rows(p, slice(0, count(p)), ("dw", "dw"))
    yield "sums_of_the_other", lambda p: sum_rows(p, slice(0, count(p)), ("db", "db"))
    yield (
        "mean_for_sum",
        lambda p: {
            name: values / count(p) for name, values in sum_rows(p, slice(0, count(p))).items()
        },
    )


def sum_rows(p: Plan[SharedCase], rows: slice, order: tuple[str, str] = ("dw", "db")) -> Outputs:
    ending = "_buffer" if "dw_buffer" in p.inputs else "_partial"
    return {
        name: p.inputs[source + ending][rows].sum(axis=0)
        for name, source in zip(("dw", "db"), order, strict=True)
    }


def shares_a_buffer(case: SharedCase) -> bool:
    return case.partials < case.M


def has_short_steps(case: SharedCase) -> bool:
    return case.chunk > 0 and (case.chunk % case.rows != 0 or case.M % case.chunk != 0)


PARTIAL_SUMS = ("dw_partial", "db_partial")

ADD_TO_BUFFERS = Part(
    LOCKED_CASES,
    _plan_locked,
    list_locked_models,
    traits=(("buffer_not_accumulated", shares_a_buffer),),
)
