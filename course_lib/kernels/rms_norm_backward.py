"""RMSNorm backward: that of LayerNorm without the mean. Formulas, kernels and designs are in
norm_backward.py."""

from __future__ import annotations

from torch import Tensor

from course_lib.kernels.norm_backward import DESIGNS, norm_backward

ALGORITHMS = ("auto", *DESIGNS)


def rms_norm_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, *, algorithm: str = "auto"
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`course_lib.kernels.rms_norm.rms_norm_forward`.

    Args:
        dy, x: shape (M, N), fp32, fp16, bf16 or fp64, any strides, also 0 as in an expanded dy.
        w: shape (N,), or None for all ones.
        rstd: shape (M,), as the forward pass saved it: fp32, or fp64 for an fp64 x.
        algorithm: one of ALGORITHMS; "auto" takes that of
            :func:`course_lib.kernels.launch.choice.choose_backward`.

    Returns: dx of x's shape and dtype, contiguous; dw, shape (N,), in w's dtype (x's without w).

    Raises: ValueError if the algorithm is unknown, or N is too long for it.
    """
    dx, dw, _ = norm_backward(
        dy, x, w, None, rstd, bias_dtype=None, algorithm=algorithm, designs=DESIGNS
    )
    return dx, dw
