"""The bytes that five launches of norm kernels ask for, as whole numbers: the bytes of each tensor,
and the usual mistakes.

A test compares every number here with a trace of the kernels
(course_lib/lessons/lesson15/accounting.py), so that the numbers do not depend on this file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib.exercises.batteries import name_cases
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case, SharedCase
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan

ITEMSIZE = {"fp32": 4, "fp16": 2}
_OUTPUTS = ("read", "written")
_WHOLE = 0.25  # allowed error: a quarter of the distance to the next whole number

# The sizes are small, so that a total can be worked out by hand and has at most six digits. M, N,
# ROWS and the chunks differ.
_PLAIN = (
    Case("one row", 1, 8, 0, "M = 1: each program has all there is", "M is taken for more than 1"),
    Case("fp32", 3, 10, 0, "numbers of x have 4 bytes, as the statistics have",
        "a number of x has 2 bytes for certain"),
    Case("fp16", 5, 12, 0, "numbers of x have 2 bytes, the statistics 4",
        "the statistics are counted with x's bytes per number", dtype="fp16"),
    Case("one column", 6, 1, 0, "N = 1", "the statistics are left out", dtype="fp16"),
    Case("square", 7, 7, 0, "M = N", "a shape with M = N is counted apart"),
    Case("long rows", 4, 300, 0, "a row of several blocks, the last of them not full",
        "the padding of the last block is counted", dtype="fp16"),
    Case("many rows", 90, 11, 0, "90 programs", "w is counted once, not by each program",
        dtype="fp16"),
)  # fmt: skip
_TILES = (
    Case("one row a tile", 5, 12, 0, "ROWS = 1: a program for each row",
        "ROWS is taken for more than 1", dtype="fp16"),
    Case("whole tiles", 8, 10, 0, "M is a multiple of ROWS", "a program too many is counted",
        rows=4),
    Case("a row left over", 9, 10, 0, "the last tile has one row",
        "the programs are rounded to the nearest", rows=4, dtype="fp16"),
    Case("a row missing", 7, 12, 0, "the last tile lacks one row", "the programs are rounded down",
        rows=4),
    Case("one tile", 3, 9, 0, "more rows in the tile than there are",
        "fewer rows than ROWS make no program", rows=8, dtype="fp16"),
    Case("long rows", 10, 200, 0, "rows of 200 columns", "w is counted once for each row", rows=2,
        dtype="fp16"),
    Case("many rows", 90, 11, 0, "23 programs", "w is counted once, not by each program", rows=4,
        dtype="fp16"),
)  # fmt: skip
_CHUNKS = (
    SharedCase("even chunks", 8, 12, 16, "two chunks of four rows, one block of columns",
        "a chunk too many is counted", chunk=4, partials=2, block_name="BLOCK_N"),
    SharedCase("a short chunk", 9, 12, 16, "the third chunk has one row",
        "the chunks are rounded down", chunk=4, partials=3, dtype="fp16", block_name="BLOCK_N"),
    SharedCase("one chunk", 5, 20, 16, "more rows in a chunk than there are",
        "fewer rows than a chunk make no chunk", chunk=8, partials=1, dtype="fp16",
        block_name="BLOCK_N"),
    SharedCase("a row a chunk", 6, 10, 16, "as many chunks as rows",
        "the partial sums are left out", chunk=1, partials=6, dtype="fp16", block_name="BLOCK_N"),
    SharedCase("two blocks", 10, 32, 16, "two full blocks of columns",
        "a block of columns too many is counted", chunk=3, partials=4, block_name="BLOCK_N"),
    SharedCase("many blocks", 10, 150, 16, "ten blocks of columns, the last of them not full",
        "the statistics are counted once, not by each block of columns", chunk=3, partials=4,
        dtype="fp16", block_name="BLOCK_N"),
    SharedCase("many rows", 90, 11, 16, "ten chunks", "w is counted once, not by each program",
        chunk=9, partials=10, dtype="fp16", block_name="BLOCK_N"),
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """One line of an account: a tensor of ``elements`` with ``itemsize`` bytes each, read or
    written ``times`` times."""

    output: str
    tensor: str
    elements: int
    itemsize: int
    times: int = 1

    @property
    def bytes(self) -> int:
        return self.elements * self.itemsize * self.times


def list_terms(entry_point: str, case: Case) -> list[Term]:
    """Return the account of one entry point: a line for each tensor that is read, then one for each
    that is written."""
    M, N, size = case.M, case.N, ITEMSIZE[case.dtype]
    programs = -(-M // case.rows)
    chunks = -(-M // case.chunk) if isinstance(case, SharedCase) else 0
    blocks = -(-N // case.block) if case.block else 0

    def matrices(output: str, times: int, *names: str) -> list[Term]:
        return [Term(output, name, M * N, size, times) for name in names]

    def vectors(output: str, times: int, *names: str) -> list[Term]:
        return [Term(output, name, N, size, times) for name in names]

    def statistics(output: str, times: int, *names: str) -> list[Term]:
        return [Term(output, name, M, 4, times) for name in names]

    def partials(output: str) -> list[Term]:
        return [Term(output, name, chunks * N, 4) for name in ("dw_partial", "db_partial")]

    accounts: dict[str, Callable[[], list[Term]]] = {
        "blocked_forward": lambda: [
            *matrices("read", 3, "x"), *vectors("read", M, "w", "b"), *matrices("written", 1, "y"),
            *statistics("written", 1, "mean", "rstd"),
        ],
        "resident_forward": lambda: [
            *matrices("read", 1, "x"), *vectors("read", programs, "w", "b"),
            *matrices("written", 1, "y"), *statistics("written", 1, "mean", "rstd"),
        ],
        "add_then_rms_norm": lambda: [
            *matrices("read", 1, "x", "residual", "total"), *vectors("read", M, "w"),
            *matrices("written", 1, "total", "y"), *statistics("written", 1, "rstd"),
        ],
        "add_rms_norm": lambda: [
            *matrices("read", 1, "x", "residual"), *vectors("read", M, "w"),
            *matrices("written", 1, "total", "y"), *statistics("written", 1, "rstd"),
        ],
        "two_stage_backward": lambda: [
            *matrices("read", 2, "x", "dy"), *vectors("read", M, "w"),
            *statistics("read", 1 + blocks, "mean", "rstd"), *partials("read"),
            *matrices("written", 1, "dx"), *partials("written"), *vectors("written", 1, "dw", "db"),
        ],
    }  # fmt: skip
    return accounts[entry_point]()


def add_up(terms: list[Term], output: str) -> int:
    return sum(term.bytes for term in terms if term.output == output)


def _plan(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    terms = list_terms(entry_point, case)
    values = [case.M, case.N, ITEMSIZE[case.dtype]]
    if entry_point == "resident_forward":
        values.append(case.rows)
    if isinstance(case, SharedCase):
        values += [case.chunk, case.block]
    tensors = tuple(Tensor(name, "fp32", (), (), any_dtype=True) for name in _OUTPUTS)
    expected = {
        name: Expected(np.array(float(add_up(terms, name))), np.array(_WHOLE), whole=True)
        for name in _OUTPUTS
    }
    return Plan(case, entry_point, (), tensors, tuple(values), {}, expected)


# ---- wrong accounts: a cause, and a function that makes the mistaken line from a right one (None
# leaves the line out)
# With one row per program w is loaded M times: M N numbers, as many as a matrix has. An account
# without w and an account without one load of x have the same total, so both mistakes have one
# cause.

Mistake = Callable[[Term, Case], Term | None]
_STATISTICS, _WEIGHTS, _PARTIALS = ("mean", "rstd"), ("w", "b"), ("dw_partial", "db_partial")


def _leave_out(*names: str) -> Mistake:
    return lambda term, case: None if term.tensor in names else term


def _change(names: tuple[str, ...], **changes: Callable[[Term, Case], int]) -> Mistake:
    return lambda term, case: (
        replace(term, **{key: make(term, case) for key, make in changes.items()})
        if term.tensor in names
        else term
    )


def _is_matrix(term: Term) -> bool:
    return term.tensor in ("x", "residual", "total", "y", "dy", "dx")


def _round_programs_down(term: Term, case: Case) -> Term:
    return (
        replace(term, times=case.M // case.rows)
        if term.tensor in _WEIGHTS and case.rows > 1
        else term
    )


def _round_chunks_down(term: Term, case: Case) -> Term:
    if term.tensor in _PARTIALS and isinstance(case, SharedCase):
        return replace(term, elements=case.M // case.chunk * case.N)
    return term


def _round_blocks_down(term: Term, case: Case) -> Term:
    return (
        replace(term, times=1 + case.N // case.block)
        if term.tensor in _STATISTICS and case.block
        else term
    )


def _times_of_matrices(times: int) -> Mistake:
    return lambda term, case: replace(term, times=times) if _is_matrix(term) else term


_MISTAKES: tuple[tuple[str, Mistake], ...] = (
    ("w_counted_once", _change(_WEIGHTS, times=lambda term, case: 1)),
    ("loads_miscounted", _leave_out(*_WEIGHTS)),
    ("loads_miscounted", _leave_out("b")),
    ("loads_miscounted", _leave_out("w")),
    ("w_counted_for_each_row", _change(_WEIGHTS, times=lambda term, case: case.M)),
    ("statistics_not_counted", _leave_out(*_STATISTICS)),
    ("statistics_not_counted", _leave_out("mean")),
    ("statistics_in_itemsize",
        _change(_STATISTICS, itemsize=lambda term, case: ITEMSIZE[case.dtype])),
    ("statistics_loaded_once", _change(_STATISTICS, times=lambda term, case: 1)),
    ("statistics_loaded_once",
        _change(_STATISTICS, times=lambda term, case: max(term.times - 1, 1))),
    ("statistics_loaded_once", _change(_STATISTICS, times=lambda term, case: min(term.times, 2))),
    ("programs_rounded_down", _round_programs_down),
    ("programs_rounded_down", _round_chunks_down),
    ("programs_rounded_down", _round_blocks_down),
    ("numbers_for_bytes", lambda term, case: replace(term, itemsize=1)),
    ("numbers_for_bytes", lambda term,
        case: replace(term, itemsize=1) if term.itemsize != 4 or _is_matrix(term) or term.tensor
        in _WEIGHTS else term),
    *(("loads_miscounted", _times_of_matrices(times)) for times in (1, 2, 3, 4)),
    ("loads_miscounted", _leave_out("total")),
    ("loads_miscounted", _leave_out("residual")),
    ("partials_not_counted", _leave_out(*_PARTIALS)),
    ("partials_not_counted", _leave_out("db_partial")),
    ("partials_in_itemsize", _change(_PARTIALS, itemsize=lambda term, case: ITEMSIZE[case.dtype])),
    ("partials_not_counted", lambda term,
        case: replace(term, elements=case.N) if term.tensor in _PARTIALS else term),
    ("gradients_not_counted", _leave_out("dw", "db")),
    ("gradients_not_counted", lambda term,
        case: None if term.output == "written" and term.tensor == "dx" else term),
    ("gradients_in_fp32", _change(("dw", "db"), itemsize=lambda term, case: 4)),
    # Two mistakes that are often made together: only the matrices are counted, or each of them only
    # once.
    ("only_matrices_counted", lambda term, case: term if _is_matrix(term) else None),
    ("only_matrices_counted", lambda term,
        case: replace(term, times=1) if _is_matrix(term) else None),
)  # fmt: skip


def _list_models(entry_point: str) -> Callable[[], Iterator[tuple[str, Model]]]:
    def compute(plan: Plan, mistake: Mistake, output: str) -> Outputs:
        terms = [mistake(term, plan.case) for term in list_terms(entry_point, plan.case)]
        return {
            output: np.array(float(add_up([term for term in terms if term is not None], output)))
        }

    def models() -> Iterator[tuple[str, Model]]:
        yield (
            "outputs_swapped",
            lambda p: dict(
                zip(_OUTPUTS, (p.expected[name].values for name in _OUTPUTS[::-1]), strict=True)
            ),
        )
        for output in _OUTPUTS:
            for cause, mistake in _MISTAKES:
                yield cause, lambda p, mistake=mistake, output=output: compute(p, mistake, output)

    return models


_BATTERIES: dict[str, tuple[Any, ...]] = {
    "blocked_forward": _PLAIN,
    "resident_forward": _TILES,
    "add_then_rms_norm": _PLAIN,
    "add_rms_norm": _PLAIN,
    "two_stage_backward": _CHUNKS,
}
PARTS = {
    name: Part(name_cases(name, cases), _plan, _list_models(name))
    for name, cases in _BATTERIES.items()
}
