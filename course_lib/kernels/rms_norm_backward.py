"""RMSNorm backward: that of LayerNorm without the mean. Formulas, kernels and designs are in
norm_backward.py."""

from __future__ import annotations

from torch import Tensor

from course_lib.kernels.norm_backward import DESIGNS, norm_backward

ALGORITHMS = ("auto", *DESIGNS)


def rms_norm_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, *,
    dtotal: Tensor | None = None, needs_dw: bool = True, w_offset: float = 0.0,
    algorithm: str = "auto",
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The gradients of :func:`course_lib.kernels.rms_norm.rms_norm_forward`.

    Args:
        dy, x: shape (..., N), fp32, fp16, bf16 or fp64, any strides, also 0 as in an expanded dy.
        w: shape (N,), or None for all ones.
        rstd: shape (M,) for M rows, as the forward pass saved it: fp32, or fp64 for an fp64 x.
        dtotal, needs_dw, w_offset: as for
            :func:`course_lib.kernels.layer_norm_backward.layer_norm_backward`.
        algorithm: one of ALGORITHMS; "auto" takes that of
            :func:`course_lib.kernels.launch.choice.choose_backward`.

    Returns: dx of x's shape and dtype, contiguous; dw, shape (N,), in w's dtype (x's without w), or
    None if it is not needed.

    Raises: ValueError if the algorithm is unknown, or does not take these arguments.
    """
    dx, dw, _ = norm_backward(
        dy, x, w, None, rstd, dtotal=dtotal, needs_dw=needs_dw, needs_db=False, bias_dtype=None,
        algorithm=algorithm, designs=DESIGNS, w_offset=w_offset,
    )  # fmt: skip
    return dx, dw
