"""Lessons 07 and 08: the accesses of a LayerNorm forward kernel: one of the course's, or the
learner's current file."""

from __future__ import annotations

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.own_launch import EPS, order_arguments
from course_lib.lessons.pictures.access_map.widget import access_map
from course_lib.lessons.pictures.compiled_kernel.model import learners_kernel

KERNELS = (N_("blocked"), N_("resident"), N_("yours, 07a"), N_("yours, 08a"))


def forward_map(
    *kernels: str, M: int = 4, N: int = 100, block: int = 64, rows: int = 2
) -> AskingPicture:
    """Show the memory accesses of a LayerNorm forward on a packed fp16 matrix of M x N, with w and
    b in fp32.

    Args:
        kernels: names from KERNELS to choose from, all by default. The picture starts with the
            first.
        block: columns per step of the blocked kernels. The resident kernels take whole rows.
        rows: ROWS of the resident kernels.

    Raises: CourseError if a name is not in KERNELS, or the first kernel is the learner's and not
    written yet.
    """
    names = kernels or KERNELS
    if not set(names) <= set(KERNELS):
        raise CourseError(
            _("the map shows {known}; you asked for {names}.").format(
                known=list_words(KERNELS), names=list_words(names)
            )
        )
    controls = {
        "kernel": ipywidgets.Dropdown(
            options=[(_(name), name) for name in names], value=names[0], description=_("kernel")
        )
    }
    return AskingPicture(lambda kernel: _trace(kernel, M, N, block, rows), controls, _("Run it"))


def _trace(kernel: str, M: int, N: int, block: int, rows: int) -> MovingPicture:
    import torch
    import triton

    from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

    x = torch.randn(M, N, generator=torch.Generator().manual_seed(0)).half()
    y = torch.empty_like(x)
    w = torch.ones(N)
    b = torch.zeros(N)
    mean = torch.empty(M)
    rstd = torch.empty(M)
    whole = {"ROWS": rows, "BLOCK": triton.next_power_of_2(N)}
    flags = {"HAS_W": True, "HAS_B": True}
    tiles = (triton.cdiv(M, rows),)
    if kernel.startswith("yours"):
        exercise, grid, blocks = (
            ("07a", (M,), {"BLOCK": block}) if kernel.endswith("07a") else ("08a", tiles, whole)
        )
        tensors = {"x": x, "y": y, "w": w, "b": b, "mean": mean, "rstd": rstd}
        arguments, constants = order_arguments(exercise, M, N, tensors | blocks)
        traced = access_map(learners_kernel(exercise), grid, *arguments, **constants)
    elif kernel == "blocked":
        traced = access_map(
            layer_norm_blocked_kernel,
            (M,),
            x,
            y,
            w,
            b,
            mean,
            rstd,
            N,
            1,
            N,
            1,
            N,
            EPS,
            **flags,
            BLOCK=block,
        )
    else:
        traced = access_map(
            layer_norm_resident_kernel,
            tiles,
            x,
            y,
            w,
            b,
            mean,
            rstd,
            N,
            1,
            N,
            1,
            M,
            N,
            EPS,
            **flags,
            **whole,
        )
    assert isinstance(traced, MovingPicture)
    return traced
