"""The VJP of LayerNorm (10a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.dx_kernels import OF_LAYER_NORM, RARE, Mistake
from course_lib.exercises.vjps import (
    FUNCTION_MISTAKES,
    LAYER_NORM_CASES,
    list_models,
    plan_layer_norm,
)
from course_lib.grading.cases.plan import Part

_DX_LAYER_NORM: tuple[Mistake, ...] = (
    *OF_LAYER_NORM,
    *FUNCTION_MISTAKES,
    ("vjp_divisor", {"axis2": 0}),
    *(
        ("vjp_divisor", {"divisor1": one, "divisor2": two})
        for one in ("N", "N-1", "N-1 or 1", "1", "M")
        for two in ("N-1", "N-1 or 1", "1", "M")
    ),
)


PARTS = {
    "layer_norm_vjp": Part(
        LAYER_NORM_CASES, plan_layer_norm, partial(list_models, _DX_LAYER_NORM), rare=RARE
    )
}
