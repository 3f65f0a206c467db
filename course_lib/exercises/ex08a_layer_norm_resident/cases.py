"""LayerNorm forward, rows that stay in registers (08a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.compiler import Pointer, Specialisation
from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.layer_norm_kernels import list_models, make_plan
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Part

CASES = (
    make_case("worked example", 3, 8, 8, "the 3 x 8 worked example, one row a program"),
    make_case("padded, mean 3", 5, 17, 32),
    make_case("two rows a program", 4, 16, 16, "no padding, two full tiles"),
    make_case("a row too many", 5, 12, 16),
    make_case("one row, many asked", 1, 30, 32),
    make_case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", rows=2, mean=0.0),
    make_case("many rows", 150, 20, 32, "10 programs of 16 rows, the last one partly filled",
        rows=16),
    make_case("many programs", 299, 3, 16),
    make_case("small spread", 3, 100, 128, rows=2),
    make_case("tiny eps", 3, 96, 128, rows=2),
    make_case("zeros", 4, 17, 32, rows=2),
    make_case("constant row", 2, 20, 32),
    make_case("mean 1000", 2, 768, 1024),
    make_case("mean 10000", 2, 255, 256, rows=2),
    *list_far_out(3001, 4096),
    make_case("fp16", 3, 129, 256, rows=2),
    make_case("fp16, std 100", 2, 2500, 4096),
    make_case("fp16, mean 8", 2, 1025, 2048),
    make_case("bf16", 3, 127, 128, rows=2),
    make_case("fp32 weights", 2, 33, 64, "x in fp16, w and b in fp32", rows=2),
    make_case("fp32 out", 2, 33, 64, rows=2),
    make_case("fp32 in", 2, 33, 64, rows=2),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("sliced", 5, 50, 64,
        "x and y are slices of wider matrices, so their row strides differ", rows=2),
    make_case("a NaN row", 4, 19, 32, rows=4),
    make_case("an Inf row", 4, 19, 32, rows=4),
    make_case("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4),
)  # fmt: skip


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
