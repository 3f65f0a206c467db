"""dx of RMSNorm (11b): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.batteries import make_case
from course_lib.exercises.dx_kernels import (
    OF_LANES,
    OF_RMS_NORM,
    RARE,
    Mistake,
    list_models,
    plan_dx,
)
from course_lib.grading.cases.plan import Part
from course_lib.norms import reference

CASES = (
    make_case("worked example", 3, 8, 8),
    make_case("padded, mean 3", 5, 17, 32, mistake="a padded lane adds -mean * rstd to c1"),
    make_case("one column", 3, 1, 16, "N = 1: dx is 0 but for eps", "c1 or c2 is divided by N - 1",
        eps=0.1),
    make_case("one row", 1, 129, 256, "M = 1, 127 padded lanes"),
    make_case("long row", 2, 1000, 1024, mistake="c1 and c2 are divided by BLOCK", mean=-2.0),
    make_case("small spread", 3, 96, 128, "values around 0.03, eps = 1e-12: rstd is 33",
        "rstd is computed anew, with an eps of the code", eps=1e-12, mean=0.0),
    make_case("large eps", 3, 100, 128, "values around 0.03: eps = 0.1 rules rstd",
        "rstd is computed anew, without eps"),
    make_case("zero row", 2, 20, 32, "every element of x is 0: dx is wdy * rstd",
        "rstd is computed anew, without eps", mean=0.0, eps=1e-3),
    make_case("fp16", 3, 129, 256),
    make_case("fp16, long row", 2, 2500, 4096, "c1 adds up 2500 products: fp16 has 11 bits"),
    make_case("bf16", 3, 127, 128),
    make_case("fp32 weights", 2, 33, 64),
    make_case("fp32 dx", 2, 33, 64),
    make_case("fp32 dy", 2, 33, 64),
    make_case("many rows", 1200, 3, 16),
    make_case("8200 columns", 1, 8200, 16384),
    make_case("zeros", 5, 17, 32, "0 in x, in w and as sums of rows whose terms are not 0",
        "an element or a sum that is 0 is taken for padding"),
    make_case("far columns", 3, 4, 16),
    make_case("sliced", 4, 50, 64, "dy, x and dx are slices of wider matrices: three row strides",
        "one row stride is taken for all three tensors"),
    make_case("expanded", 4, 50, 64,
        "dy is one number with strides (0, 0), as y.sum().backward() sends it"),
    make_case("transposed", 5, 36, 64, "dy is a transposed matrix: its columns are M apart"),
    make_case("a NaN row", 4, 19, 32, "row 0 of dy begins with NaN, which must stay in row 0"),
    make_case("an Inf row", 4, 19, 32, "dy holds an Inf in row 1: it must stay in row 1"),
    make_case("far rows", 4, 17, 32, mean=1.0),
)  # fmt: skip
_RMS_NORM: tuple[Mistake, ...] = (
    *OF_RMS_NORM,
    *OF_LANES,
    *(("vjp_divisor", {"divisor1": divisor}) for divisor in ("BLOCK", "1", "N-1", "N-1 or 1")),
    ("mask_missing", {"padding": "x and dy"}),
)


PARTS = {
    "rms_norm_dx_kernel": Part(
        CASES,
        partial(plan_dx, norm=reference.rms_norm, vjp=reference.rms_norm_vjp, tiled=False),
        partial(list_models, _RMS_NORM),
        rare=RARE,
    )
}
