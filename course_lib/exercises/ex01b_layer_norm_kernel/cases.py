"""LayerNorm, your first norm kernel (01b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.layer_norm_kernels import list_models, make_plan
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Part, Plan

# the learner's first LayerNorm: fp32, and only y is asked for
CASES = (
    make_case("worked example", 3, 8, 8, "the 3 x 8 worked example, no padded lane"),
    make_case("five columns, mean 14", 2, 5, 8, "3 padded lanes, mean 14",
        "the padded lanes are in the variance, as in the lesson's first kernel", mean=14.0,
        std=2.0),
    make_case("padded, mean 3", 5, 17, 32),
    make_case("a wide block", 3, 6, 64, "58 padded lanes, mean -2",
        "most of the variance is padding", mean=-2.0),
    make_case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", mean=1.0),
    make_case("one row", 1, 129, 256, "M = 1, 127 padded lanes"),
    make_case("many rows", 1200, 3, 16),
    make_case("small spread", 3, 100, 128),
    make_case("zeros", 4, 17, 32),
    make_case("quiet", 2, 100, 128,
        "std 0.0001, eps = 1e-12: whatever else is added to the variance shows",
        "eps is a constant of the code, or something else is added to the variance", std=1e-4,
        eps=1e-12),
    make_case("constant row", 2, 20, 32),
    make_case("mean 1000", 2, 768, 1024),
    *list_far_out(3001, 4096),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("sliced", 4, 50, 64,
        "x and y are slices of wider matrices, so their row strides differ"),
    make_case("a NaN row", 4, 19, 32),
    make_case("an Inf row", 4, 19, 32),
)  # fmt: skip
_SAVED = ("mean", "rstd")  # outputs of the other two kernels besides y


def _plan_one_block(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    whole = make_plan(case, kernel, rng, resident=False)
    return replace(
        whole,
        tensors=tuple(tensor for tensor in whole.tensors if tensor.name not in _SAVED),
        arguments=tuple(argument for argument in whole.arguments if argument not in _SAVED),
        expected={"y": whole.expected["y"]},
        reads={},
    )


def _list_models_of_y() -> Iterator[tuple[str, Model]]:
    """Yield the wrong formulas that change y."""
    for cause, model in list_models():
        if cause not in ("wrong_statistic_saved", "outputs_swapped"):
            yield cause, lambda p, model=model: {"y": model(p)["y"]}


PARTS = {"layer_norm_kernel": Part(CASES, _plan_one_block, _list_models_of_y)}
