"""The masked copy: the first kernel of the course."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.expectations import half_ulp
from course_lib.exercises.tensors import place_vector, round_values
from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Part, Plan

CASES = (
    Case("one full block", 1, 8, 8, "n equals BLOCK, one program", "anything but a copy",
        vector=True),
    Case("two full blocks", 1, 16, 8, "two programs", "every program copies the first block",
        vector=True),
    Case("three lanes over", 1, 13, 8, "n is no multiple of BLOCK",
        "the mask is missing, or off by one", vector=True),
    Case("one element", 1, 1, 8, "seven of eight lanes are past the end",
        "a block is taken to be full", vector=True),
    Case("many programs", 1, 1000, 64, "16 programs, the last one partly filled",
        "only the first programs copy", vector=True),
    Case("70 programs", 1, 560, 8, "more than 64 programs", "programs after the 64th copy nothing",
        vector=True),
    Case("special values", 1, 40, 16, "NaN, Inf, 0 and -0 among the others",
        "NaN, Inf or -0 is replaced on the way", fill="special", vector=True),
    Case("half precision", 1, 200, 128, "another dtype", "the element is taken to have 4 bytes",
        dtype="fp16", vector=True),
)  # fmt: skip


def _plan_copy(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    x = round_to(
        by_hand.choose_rows(1, case.N)[0] if case.by_hand else rng.normal(size=case.N), case.dtype
    )
    if case.fill == "special":
        x[3::4] = np.resize(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], x.dtype), x[3::4].shape)
    tensors = (place_vector("x", case, x), place_vector("y", case, None))
    values, programs = x.astype(np.float64), -(-case.N // case.block)
    return Plan(
        case, kernel, (programs,), tensors, ("x", "y", case.N), {"BLOCK": case.block},
        {"y": Expected(values, half_ulp(values, case.dtype), signed=True)}, inputs={"x": values},
        reads={"x": 1}, reads_by_lane=True,
        spread={"x": programs, "y": programs}, interleavings=int(programs == 2),
    )  # fmt: skip


def _list_models() -> Iterator[tuple[str, Model]]:
    for dtype in ("fp16", "bf16"):
        yield ("rounded_on_the_way", lambda p, d=dtype: {"y": round_values(p.inputs["x"], d)})
    yield "rounded_on_the_way", lambda p: {"y": np.trunc(p.inputs["x"])}
    yield "not_a_plain_copy", lambda p: {"y": np.abs(p.inputs["x"])}
    yield "not_a_plain_copy", lambda p: {"y": -p.inputs["x"]}
    yield "not_a_plain_copy", lambda p: {"y": 2 * p.inputs["x"]}
    yield "not_a_plain_copy", lambda p: {"y": 0 * p.inputs["x"]}
    # the index of the element is stored, not its value
    yield ("not_a_plain_copy", lambda p: {"y": np.arange(p.case.N, dtype=np.float64)})


PARTS = {
    "copy_kernel": Part(
        CASES,
        _plan_copy,
        _list_models,
        rare=(("special_values", lambda p, outputs: p.case.fill == "special"),),
        minor={"reads": ("lanes_clamped", lambda case: case.padded_lanes > 0)},
    )
}
