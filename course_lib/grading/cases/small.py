"""Cases that a learner can work out by hand, made after a case that fails: few rows and columns,
small blocks, whole numbers.

They are no part of a battery and decide nothing. Once the verdict is known, it shows one of them in
place of a larger case, if the code is wrong on it in the same way. A test runs the right solution
on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import prod

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.cases.case import (
    PARTIALS,
    Case,
    SharedCase,
    describe_name,
    describe_padded_lanes,
)

# x has a variance of 9 (exercises/by_hand.py). SMALL_EPS changes no digit that is shown; with
# LARGE_EPS the root is 4. A row of one number has a variance of 0, where SMALL_EPS would make rstd
# huge; with _EPS_OF_ONE rstd is 1/3, or 1/5 for RMSNorm.
SMALL_EPS, LARGE_EPS, _EPS_OF_ONE = 1e-12, 7.0, 9.0
_MOST, _MOST_OF_EPS = 20, 3  # the most cases of each kind, and of the kind with a large eps
# With at most this many kinds of rows, each kind is also paired with columns that leave no padded
# lane.
_FEW_KINDS = 6
# Row lengths that count as longer ones when the easiest case is chosen: N -> length. One column
# says little: its variance and its dx are 0. Three whole numbers have no whole standard deviation.
_EFFORT = {1: 6.0, 3: 4.5}
_BY_HAND = N_("made to be worked out by hand")
# The fields that a case keeps when everything special about it is dropped
_SHAPE = ("rows", "block_name", "rows_name", "partials", "partials_name", "chunk", "orders")
# The fills that a small case can have as well
_KEPT_FILLS = {
    "normal",
    "nan row",
    "inf row",
    "zeros",
    "constant",
    "flat",
    "special",
    "a empty",
    "b empty",
    "both empty",
}
# N and BLOCK, if one block holds a row
_FEW_COLUMNS = ((2, 2), (2, 4), (3, 4), (4, 4), (5, 8), (1, 2))
_SEVERAL_BLOCKS = (*_FEW_COLUMNS, (3, 2), (4, 2), (5, 4), (5, 2), (6, 2))


@dataclass(frozen=True)
class _Rows:
    M: int
    rows: int = 1
    chunk: int = 0
    partials: int = 1
    leading: tuple[int, ...] = ()


def list_small_cases(case: Case, battery: Sequence[Case]) -> list[Case]:
    """Return cases that can stand for ``case`` of ``battery``, the easiest first. None of them has
    more elements than ``case``.

    The order: cases with nothing special but their shape; cases with a large eps, if the battery
    varies eps; cases with the dtypes, the layout and the fill of ``case``.
    """
    # with one row only, no number depends on another
    has_statistics = any(c.M > 1 for c in battery)
    found: dict[Case, None] = {}
    for base, words, rows, most in _list_kinds(case, battery):
        reshaped = (_reshape(base, column, r) for column, r in _pair(_list_columns(battery), rows))
        fitting = [
            c for c in reshaped if c.M * c.N <= case.M * case.N and (c.M > 1 or not c.has_bad_row)
        ]
        fitting.sort(
            key=lambda c: (
                c.M * _EFFORT.get(c.N, c.N) if has_statistics else c.N,
                c.M,
                c.block,
                c.rows,
            )
        )
        found |= {_word(c, case, words): None for c in fitting[:most]}
    return list(found)


def _list_kinds(
    case: Case, battery: Sequence[Case]
) -> Iterator[tuple[Case, str, list[_Rows], int]]:
    """Yield each kind of cases: one of them, words for it, its choices of rows, and the most cases
    to take."""
    plain, rows = _forget_special(case, battery), _list_rows(battery)
    yield plain, "", rows, _MOST
    if len({c.eps for c in battery}) > 1:
        yield replace(plain, eps=LARGE_EPS), f"eps = {LARGE_EPS:g}", rows[:1], _MOST_OF_EPS
    fill = "normal" if case.fill == "worked" else case.fill
    eps = SMALL_EPS if case.eps == Case.eps else case.eps
    candidate = replace(case, fill=fill, eps=eps, mean=float(round(case.mean)), by_hand=True)
    if candidate.fill in _KEPT_FILLS and not case.is_far and not _is_same_kind(candidate, plain):
        alone = case.vector and case.M == 1
        own_rows = _list_leading(case) if case.leading else [_Rows(1)] if alone else rows
        yield (
            candidate,
            _('of the kind "{name}"').format(name=describe_name(case.name)),
            own_rows,
            _MOST,
        )


def _forget_special(case: Case, battery: Sequence[Case]) -> Case:
    """Return the case with the defaults of its class for all fields but its shape."""
    shape = {f.name: getattr(case, f.name) for f in fields(case) if f.name in _SHAPE}
    vector = all(c.vector for c in battery)
    return type(case)(
        case.name,
        case.M,
        case.N,
        case.block,
        case.why,
        eps=SMALL_EPS,
        vector=vector,
        by_hand=True,
        **shape,
    )


def _is_same_kind(candidate: Case, plain: Case) -> bool:
    alike = {name: getattr(candidate, name) for name in ("mean", "std", "eps")}
    return candidate == replace(plain, **alike)


# ---- shapes


def _list_columns(battery: Sequence[Case]) -> list[tuple[int, int]]:
    """Return pairs of N and BLOCK."""
    if not any(c.block for c in battery):
        return [(N, 0) for N in (2, 3, 4, 5, 1)]
    return list(_FEW_COLUMNS if all(c.one_block for c in battery) else _SEVERAL_BLOCKS)


def _list_rows(battery: Sequence[Case]) -> list[_Rows]:
    """Return one choice of rows for each way in which M, ROWS, chunks and partial sums can relate;
    the fewest rows first."""
    kinds: dict[tuple, _Rows] = {}
    for r in _list_choices_of_rows(battery):
        kinds.setdefault(_find_kind(r), r)
    return list(kinds.values())


def _list_choices_of_rows(battery: Sequence[Case]) -> list[_Rows]:
    heights = sorted({min(c.rows, 2) for c in battery})
    shared = [c for c in battery if isinstance(c, SharedCase)]
    few = (1, 2, 3, 4)
    if any(c.chunk for c in shared):
        return [
            _Rows(M, rows, chunk, -(-M // chunk)) for M, rows, chunk in product(few, heights, few)
        ]
    if shared and all(c.partials == c.M for c in shared):
        return [_Rows(M, rows, 0, M) for M, rows in product(few[:3], heights)]
    if shared:
        return [_Rows(M, rows, 0, P) for M, rows, P in product(few, heights, few[:3])]
    most = 4 if heights != [1] else min(3, max(c.M for c in battery))
    return [_Rows(M, rows) for M, rows in product(few[:most], heights)]


def _find_kind(r: _Rows) -> tuple:
    """Return the relations of the rows that can matter to a kernel. Of several choices with the
    same relations one is enough."""
    tiles = -(-r.M // r.rows)
    of_parts = (
        r.partials == 1,
        (r.partials < r.M) - (r.partials > r.M),
        tiles > r.partials,
        tiles % r.partials == 0,
    )
    of_chunks = (r.chunk > r.rows, r.chunk % r.rows == 0, r.M % r.chunk == 0) if r.chunk else ()
    return min(r.M, 2), r.rows, r.M % r.rows == 0, tiles > 1, of_parts, of_chunks


def _list_leading(case: Case) -> list[_Rows]:
    """Return choices of leading dimensions, as many dimensions as the case has."""
    sizes = product(*((1, 2) if size > 1 else (1,) for size in case.leading))
    return [_Rows(prod(leading), leading=leading) for leading in sizes]


def _pair(
    columns: list[tuple[int, int]], rows: list[_Rows]
) -> Iterator[tuple[tuple[int, int], _Rows]]:
    """Yield all columns with the fewest rows, and all rows with a few columns: some with padded
    lanes, N = 1, and some without padded lanes if the rows are few."""
    yield from ((column, rows[0]) for column in columns)
    few = (columns[2],) if len(rows) > _FEW_KINDS else (columns[0], columns[2])
    yield from product((*few, next(column for column in columns if column[0] == 1)), rows[1:])


def _reshape(base: Case, column: tuple[int, int], r: _Rows) -> Case:
    shared = (
        {"partials": r.partials, "chunk": r.chunk, "orders": min(base.orders, 1)}
        if isinstance(base, SharedCase)
        else {}
    )
    N, block = column
    eps = _EPS_OF_ONE if N == 1 and base.eps == SMALL_EPS else base.eps
    return replace(base, M=r.M, N=N, block=block, rows=r.rows, leading=r.leading, eps=eps, **shared)


def _word(made: Case, case: Case, words: str) -> Case:
    """Return ``made`` with a name and words for a learner: that it was made to be worked out by
    hand, and what is special about it."""
    function, _words = case.split_why()  # the function, if the exercise has several
    words_of_case = [
        function,
        _(_BY_HAND),
        PARTIALS * (PARTIALS in case.why),
        describe_padded_lanes(made),
        words,
    ]
    return replace(
        made, name=f"{case.name}, by hand", why=_(", ").join(part for part in words_of_case if part)
    )
