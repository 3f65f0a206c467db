"""The kinds of cases that batteries share: what a learner is told about one, the mistake that it is
there for, what is special about it.

A battery is a table. A row has the name of the case, M, N, BLOCK, and what is not as in its kind:
`why`, `mistake` and other fields of :class:`~course_lib.grading.cases.case.Case`. A name that only
one battery has is no kind, and its row says everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from course_lib.grading.cases.case import Case

_KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "worked example": ("the 3 x 8 worked example",
        "any formula but the right one: the lesson works out each number", {"fill": "worked"}),
    "padded, mean 3": ("15 padded lanes, mean 3", "a padded lane adds (0 - mean)^2", {"mean": 3.0}),
    "mean 3": ("mean 3", "x or the deviation stands for xhat", {"mean": 3.0}),
    "one short block": ("N below BLOCK, 9 padded lanes, mean -2",
        "a row is taken to have a whole block at least", {"mean": -2.0}),
    "one full block": ("N equals BLOCK: one step, no padding",
        "a further, empty block is loaded where N equals BLOCK", {"mean": 1.0}),
    "many blocks": ("16 blocks, 24 padded lanes, mean 3",
        "only the first blocks, or all but the last, are added up", {"mean": 3.0}),
    "one column": ("N = 1", "a sum is divided by N - 1", {"mean": 2.0}),
    "two columns": ("N = 2: next to nothing of wdy is left",
        "terms that nearly cancel are rounded one by one", {"mean": -1.0}),
    "one row": ("M = 1", "there is a second row for certain", {"mean": 1.0}),
    "one row, many asked": ("M = 1, ROWS = 8", "rows past M are loaded or stored",
        {"rows": 8, "mean": 3.0}),
    "a row too many": ("M = 5 is no multiple of ROWS = 4", "the last tile is taken to be full",
        {"rows": 4, "mean": -2.0}),
    "two rows a program": ("two full tiles, no padding", "the rows of a tile share one sum",
        {"rows": 2, "mean": 1.0}),
    "square": ("M = N: no shape tells rows from columns", "rows are taken for columns",
        {"mean": 1.0, "std": 2.0}),
    "many rows": ("1200 programs", "some number of rows is taken for all", {"mean": 1.0}),
    "many programs": ("150 programs of two rows", "only the first programs do their work",
        {"rows": 2, "mean": 1.0}),
    "long row": ("24 padded lanes", "a sum stops at a power of two of columns", {}),
    "8200 columns": ("more than 8192 columns", "a row ends after 8192 columns", {"mean": 1.0}),
    "16400 columns": ("65 blocks, the last one of 16 columns", "a row ends after 64 blocks",
        {"mean": 1.0}),
    "small spread": ("std 0.03: eps = 0.1 rules the result",
        "eps is altered, or stands outside of the root", {"std": 0.03, "eps": 0.1, "mean": 0.5}),
    "large eps": ("std 0.03: eps = 0.1 rules rstd", "eps is left out", {"std": 0.03, "eps": 0.1}),
    "tiny eps": ("std 0.0001, eps = 1e-12",
        "eps is a constant of the code, or something else is added to the variance",
        {"std": 0.0001, "eps": 1e-12}),
    "near zero": ("values around 0.003: where eps stands decides the result",
        "eps stands outside of the root", {"std": 0.003}),
    "zeros": ("every third element of x is 0, and every fourth of w",
        "an element that is 0 is taken for padding", {"mean": 2.0, "fill": "zeros"}),
    "constant row": ("the variance is exactly 0",
        "the root or the quotient of a variance of 0 is taken without eps",
        {"fill": "constant", "mean": 0.75, "eps": 0.001}),
    "zero row": ("every element is 0: y is 0, not NaN", "a row of zeros becomes NaN",
        {"fill": "constant"}),
    "mean 1000": ("the mean is 1000 times the spread",
        "the variance is the small difference of two large means", {"mean": 1000.0}),
    "mean 10000": ("the mean is 10000 times the spread",
        "the variance is the small difference of two large means", {"mean": 10000.0}),
    "fp16": ("half precision in and out, mean 3", "sums are kept in half precision",
        {"dtype": "fp16", "mean": 3.0}),
    "fp16, std 100": ("squares pass fp16's largest number, 65504",
        "squares are computed in fp16, and overflow", {"dtype": "fp16", "std": 100.0}),
    "fp16, mean 8": ("sums of squares need more than fp16's 11 bits", "sums are kept in fp16",
        {"dtype": "fp16", "mean": 8.0, "std": 0.5}),
    "fp16, long row": ("c1 and c2 add up 2500 products: fp16 has 11 bits", "c1 is added up in fp16",
        {"dtype": "fp16", "mean": 3.0}),
    "bf16": ("bfloat16 in and out, mean 3", "sums are kept in bf16",
        {"dtype": "bf16", "mean": 3.0}),
    "fp32 weights": ("x and dy in fp16, w in fp32", "w is rounded to the dtype of x",
        {"dtype": "fp16", "w_dtype": "fp32"}),
    "fp16 weights": ("x and dy in fp32, w in fp16: dx in fp32, the rest in fp16",
        "a gradient has the dtype of another tensor", {"w_dtype": "fp16"}),
    "fp32 out": ("each tensor in a dtype of its own", "y is rounded to the dtype of x or w",
        {"dtypes": (("x", "fp16"), ("w", "bf16"))}),
    "fp32 in": ("each tensor in a dtype of its own", "x is rounded to the dtype of y or w",
        {"dtypes": (("y", "bf16"), ("w", "fp16"), ("b", "bf16"))}),
    "fp32 dx": ("each tensor in a dtype of its own", "dx is rounded to the dtype of dy or w",
        {"dtypes": (("dy", "bf16"), ("w", "fp16"))}),
    "fp32 dy": ("each tensor in a dtype of its own", "dy is rounded to the dtype of x or w",
        {"dtypes": (("x", "fp16"), ("w", "bf16"))}),
    "fp32 x": ("each tensor in a dtype of its own", "x is rounded to the dtype of dy or w",
        {"dtypes": (("dy", "bf16"), ("w", "fp16"))}),
    "sliced": ("x is a slice of a wider matrix", "N is taken for the distance between rows",
        {"mean": 2.0, "layout": "sliced"}),
    "transposed": ("dy is a transposed matrix", "the columns are taken to lie one after the other",
        {"mean": 2.0, "layout": "transposed"}),
    "expanded": ("dy is one number with strides (0, 0)", "dy is read as if it had M * N numbers",
        {"mean": 2.0, "layout": "expanded"}),
    "permuted": ("the first two dimensions of x have changed places",
        "the leading dimensions are taken for one, with one stride",
        {"mean": 2.0, "layout": "permuted"}),
    "far rows": ("rows 1.5 * 2^30 elements apart: the fourth starts past 2^32",
        "the offset of a row is computed in 32 bits", {"dtype": "fp16", "layout": "far"}),
    "far columns": ("dy is transposed, its columns 1.5 * 2^30 elements apart",
        "the offset of a column is computed in 32 bits",
        {"dtype": "fp16", "mean": 1.0, "layout": "far columns"}),
    "a NaN row": ("row 0 begins with NaN, which must stay in row 0",
        "one row takes part in the sums of another", {"fill": "nan row"}),
    "an Inf row": ("row 1 holds an Inf: it must stay in row 1",
        "a mask is a product with 0, or an Inf is replaced", {"fill": "inf row"}),
    "three dimensions": ("x has shape (B, T, C): only C is normalised",
        "x.shape[0] is taken for the number of rows", {"mean": 2.0, "leading": (2, 3)}),
}  # fmt: skip


def make_case(
    name: str,
    M: int,
    N: int,
    block: int,
    why: str = "",
    mistake: str = "",
    *,
    case_class: Callable[..., Any] = Case,
    **special: Any,
) -> Any:
    """Make one row of a battery, an instance of ``case_class``. What is not given is that of the
    kind ``name``, if there is one."""
    why_of_kind, mistake_of_kind, fields = _KINDS.get(name, ("", "", {}))
    return case_class(
        name, M, N, block, why or why_of_kind, mistake or mistake_of_kind, **fields | special
    )


def list_far_out(N: int, block: int, ending: str = "") -> tuple[Case, ...]:
    """List cases with one element so far out in each row that one pass over the distances from it
    loses the variance's digits. ``ending``: of the names, where a battery has the cases twice."""
    return tuple(
        Case(
            f"{place} far out{ending}", 2, N, block,
            f"the {place} element of each row lies 200 standard deviations away",
            f"one pass over the distances from the {place} element", mean=1.0,
            fill=f"{place} far out",
        )
        for place in ("first", "middle", "last")
    )  # fmt: skip


def name_cases(entry_point: str, cases: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the cases with the function's name added: several functions of an exercise have cases
    of the same name."""
    return tuple(
        replace(case, name=f"{entry_point}, {case.name}", why=f"`{entry_point}`, {case.why}")
        for case in cases
    )
