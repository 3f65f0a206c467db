"""dx of LayerNorm (11a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.batteries import make_case
from course_lib.exercises.dx_kernels import LAYER_NORM_MISTAKES, RARE, list_models, plan_dx
from course_lib.grading.cases.plan import Part
from course_lib.norms import reference

# In every case dy is normal with mean 0.5, so that both of its projections matter; w is away from 0
# and 1, and some of it is negative.
CASES = (
    make_case("worked example", 3, 8, 8, "the 3 x 8 worked example, one row a program"),
    make_case("padded, mean 3", 5, 17, 32, "15 padded lanes, where xhat is -mean * rstd",
        "a padded lane adds -mean * rstd to c1"),
    make_case("zeros", 6, 16, 16,
        "three full tiles; 0 in x, in w and as sums of rows whose terms are not 0",
        "an element or a sum that is 0 is taken for padding", rows=2, mean=1.0),
    make_case("a row too many", 5, 12, 16),
    make_case("two rows a program", 4, 16, 16),
    make_case("one row, many asked", 1, 30, 32),
    make_case("one column", 3, 1, 16, "N = 1: dx is 0", "c1 or c2 is divided by N - 1", rows=2),
    make_case("two columns", 4, 2, 16, rows=4),
    make_case("many rows", 150, 20, 32, "10 programs of 16 rows, the last one partly filled",
        rows=16),
    make_case("many programs", 299, 3, 16),
    make_case("long row", 2, 1000, 1024, "24 padded lanes, mean 3",
        "c1 and c2 are divided by BLOCK", mean=3.0),
    make_case("small spread", 3, 96, 128, "std 0.03, eps = 1e-12: rstd is 33",
        "rstd is computed anew, with an eps of the code", rows=2, eps=1e-12, mean=0.1),
    make_case("large eps", 3, 100, 128, "std 0.03: eps = 0.1 rules rstd, and xhat is small",
        "rstd is computed anew, without eps", rows=2, mean=0.5),
    make_case("constant row", 2, 20, 32, "xhat is 0 and rstd is 1 / sqrt(eps)",
        "rstd is computed anew, without eps"),
    make_case("mean 1000", 2, 768, 1024, mistake="xhat is computed from a rounded mean"),
    make_case("fp16", 3, 129, 256, "half precision in and out, mean 8", rows=2, mean=8.0, std=0.5),
    make_case("fp16, long row", 2, 2500, 4096),
    make_case("bf16", 3, 127, 128, rows=2),
    make_case("fp32 weights", 2, 33, 64, rows=2),
    make_case("fp32 dx", 2, 33, 64, rows=2),
    make_case("fp32 dy", 2, 33, 64, rows=2),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("far columns", 3, 4, 16, rows=2),
    make_case("sliced", 5, 50, 64, "dy, x and dx are slices of wider matrices: three row strides",
        "one row stride is taken for all three tensors", rows=2),
    make_case("expanded", 4, 50, 64,
        "dy is one number with strides (0, 0), as y.sum().backward() sends it"),
    make_case("transposed", 5, 36, 64, "dy is a transposed matrix: its columns are M apart",
        rows=2),
    make_case("a NaN row", 4, 19, 32, "row 0 of dy begins with NaN, which must stay in row 0",
        rows=4),
    make_case("an Inf row", 4, 19, 32, "dy holds an Inf in row 1: it must stay in row 1", rows=4),
    make_case("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4, mean=1.0),
)  # fmt: skip


PARTS = {
    "layer_norm_dx_kernel": Part(
        CASES,
        partial(plan_dx, norm=reference.layer_norm, vjp=reference.layer_norm_vjp, tiled=True),
        partial(list_models, LAYER_NORM_MISTAKES),
        rare=RARE,
    )
}
