"""What LayerNorm and RMSNorm in PyTorch operations share: cases, plan and wrong axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.tensors import choose_strides
from course_lib.grading.cases.buffers import Tensor, compute_strides
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Plan

COMMON_CASES = (
    make_case("worked example", 3, 8, 0),
    make_case("three dimensions", 6, 10, 0),
    make_case("four dimensions", 8, 5, 0, "two more leading dimensions",
        "all but the last two dimensions are taken for one", leading=(2, 1, 4), mean=-1.0),
    make_case("one vector", 1, 12, 0, "x has one dimension",
        "x is taken to have two dimensions at least", vector=True, mean=3.0),
    make_case("square", 7, 7, 0, mistake="the statistics are those of the columns", std=1.0),
    make_case("one row", 1, 33, 0),
    make_case("one column", 5, 1, 0, mean=0.0),
    make_case("tiny eps", 3, 96, 0),
    make_case("large eps", 3, 100, 0, "std 0.03: eps = 0.1 rules the result"),
    make_case("fp16, std 100", 2, 2500, 0),
    make_case("fp16, mean 8", 2, 1025, 0),
    make_case("bf16", 3, 127, 0),
    make_case("fp32 weights", 4, 33, 0, "x in fp16, w in fp32: y has x's dtype",
        "y has the dtype of x times w"),
    make_case("fp32 x", 4, 33, 0, "x in fp32: y is, too", "y has the dtype of w",
        dtypes=(("w", "fp16"),)),
    make_case("bf16 x", 4, 33, 0, "y in bf16, w in fp32", "y has the dtype of w", dtype="bf16",
        dtypes=(("w", "fp32"),)),
    make_case("many rows", 150, 9, 0, "150 rows"),
    make_case("16400 columns", 2, 16400, 0, "more than 16384 columns",
        "a row ends after 16384 columns"),
    make_case("zeros", 4, 17, 0),
    make_case("transposed", 6, 10, 0, "x is a transposed matrix"),
    make_case("sliced", 4, 50, 0),
    make_case("permuted", 6, 10, 0, leading=(3, 2)),
    make_case("a NaN row", 4, 19, 0),
    make_case("an Inf row", 4, 19, 0),
)  # fmt: skip


def make_plan(
    case: Case, entry_point: str, x: np.ndarray, vectors: dict[str, np.ndarray], expected: Expected
) -> Plan:
    shape = (case.N,) if case.vector else (*(case.leading or (case.M,)), case.N)
    tensors = (
        Tensor("x", case.dtype, shape, choose_strides(case.layout, shape), x.reshape(shape)),
        *(
            Tensor(name, case.dtype_of(name), (case.N,), (1,), values)
            for name, values in vectors.items()
        ),
        Tensor("y", case.dtype, shape, compute_strides(shape)),
    )
    arguments = ["x", *vectors, case.eps]
    inputs = {"x": x.astype(np.float64)} | {
        name: values.astype(np.float64) for name, values in vectors.items()
    }
    reshaped = type(expected)(expected.values.reshape(shape), expected.allowed.reshape(shape))
    return Plan(
        case, entry_point, (), tensors, tuple(arguments), {}, {"y": reshaped}, inputs=inputs
    )


def list_axis_models(wrong: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    for over in ("first", "second", "last two", "all", "shape[0]", "sample"):
        yield "wrong_axis", lambda p, over=over: wrong(p, over=over)


def view_rows(p: Plan, over: str) -> tuple[np.ndarray, int | tuple[int, int]]:
    """Return x in the shape that a wrong solution gives it, and the axis over which it takes its
    statistics."""
    x = p.inputs["x"]
    shape = p.tensor("y").shape
    leading = shape[0]
    return {
        "row": (x, -1),
        "first": (x.reshape(shape), 0),
        "second": (x.reshape(shape), min(1, len(shape) - 1)),
        "last two": (x.reshape(shape), (-2, -1) if len(shape) > 1 else -1),
        "all": (x, (0, 1)),
        "shape[0]": (x.reshape(leading, -1), -1),  # x.shape[0] taken for the number of rows
        # every dimension but the first
        "sample": (x.reshape(leading if len(shape) > 1 else 1, -1), -1),
    }[over]
