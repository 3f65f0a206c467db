"""LayerNorm forward, rows that stay in registers (08a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.compiler import Pointer, Specialisation
from course_lib.exercises.batteries import list_far_out
from course_lib.exercises.layer_norm_kernels import TILED_CASES, list_models, make_plan
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Part

_FIRST_ROW_OF_FP16 = [case.name for case in TILED_CASES].index("fp16")
CASES = (
    *TILED_CASES[:_FIRST_ROW_OF_FP16],
    *list_far_out(3001, 4096),
    *TILED_CASES[_FIRST_ROW_OF_FP16:],
)


# A packed fp16 matrix of 4096 x 8192, one row per program: the row takes 8192 / (32 * 4) = 64
# registers of each thread, and a load brings at most 16 bytes.
_LAUNCH = Specialisation(
    [Pointer("fp16")] * 4 + [Pointer("fp32")] * 2 + [8192, 8192, 4096, 8192, 1e-5],
    {"ROWS": 1, "BLOCK": 8192},
)


PARTS = {
    "layer_norm_resident_kernel": Part(
        CASES,
        partial(make_plan, resident=True),
        list_models,
        counts=(
            Count(Quantity.READS, course=1, least=1, tensor="x"),
            Count(Quantity.REGISTERS, course=128, least=64),
            Count(Quantity.SPILLED, course=0, least=0),
            Count(Quantity.LOADS, course=24, least=24),
        ),
        counted_case="fp16, std 100",
        compiled=_LAUNCH,
    )
}
