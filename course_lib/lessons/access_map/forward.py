"""Lessons 07 and 08: the accesses of a LayerNorm forward kernel: one of the course's, or the learner's current file."""

from __future__ import annotations

from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.lessons.access_map.widget import access_map
from course_lib.lessons.compiled_kernel.model import learners_kernel
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture

KERNELS = ("blocked", "resident", "yours, 07a", "yours, 08a")
_EPS = 1e-5


def forward_map(*kernels: str, M: int = 4, N: int = 100, block: int = 64, rows: int = 2) -> AskingPicture:
    """Show the memory accesses of a LayerNorm forward on a packed fp16 matrix of M x N, with w and b in fp32.

    Args:
        kernels: names from KERNELS to choose from, all by default. The picture starts with the first.
        block: columns per step of the blocked kernels. The resident kernels take whole rows.
        rows: ROWS of the resident kernels.

    Raises: CourseError if a name is not in KERNELS, or the first kernel is the learner's and not written yet.
    """
    names = kernels or KERNELS
    if not set(names) <= set(KERNELS):
        raise CourseError(f"the map shows {', '.join(KERNELS)}; you asked for {', '.join(names)}.")
    controls = {"kernel": ipywidgets.Dropdown(options=names, value=names[0], description="kernel")}
    return AskingPicture(lambda kernel: _trace(kernel, M, N, block, rows), controls, "Run it")


def _trace(kernel: str, M: int, N: int, block: int, rows: int) -> MovingPicture:
    import torch
    import triton

    from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

    x = torch.randn(M, N, generator=torch.Generator().manual_seed(0)).half()
    tensors = (x, torch.empty_like(x), torch.ones(N), torch.zeros(N), torch.empty(M), torch.empty(M))
    whole = {"ROWS": rows, "BLOCK": triton.next_power_of_2(N)}
    both = {"HAS_W": True, "HAS_B": True}
    tiles = (triton.cdiv(M, rows),)
    launches: dict[str, tuple[Any, Any, tuple[Any, ...], dict[str, Any]]] = {
        "blocked": (lambda: layer_norm_blocked_kernel, (M,), (N, 1, N, 1, N, _EPS), both | {"BLOCK": block}),
        "resident": (lambda: layer_norm_resident_kernel, tiles, (N, 1, N, 1, M, N, _EPS), both | whole),
        "yours, 07a": (lambda: learners_kernel("07a"), (M,), (N, N, N, _EPS), {"BLOCK": block}),
        "yours, 08a": (lambda: learners_kernel("08a"), tiles, (N, N, M, N, _EPS), whole),
    }
    read, grid, numbers, constants = launches[kernel]
    traced = access_map(read(), grid, *tensors, *numbers, **constants)
    assert isinstance(traced, MovingPicture)
    return traced
