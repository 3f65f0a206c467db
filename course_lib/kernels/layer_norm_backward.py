"""LayerNorm backward, with six designs for the same gradients: the five of norm_backward.py, and
the tutorial's, with a lock.

- locked: each row adds its part of dw and db into one of GROUP shared buffers under a spin lock; 3
  passes plus the traffic on the buffers. The order of the additions depends on timing, so bits
  change between runs. Lesson 12 shows this design; "auto" never chooses it.

Source: the Triton tutorial "Layer Normalization", with its mistakes in strides, buffers, barriers
and the flag repaired.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.norm_backward import DESIGNS, check_whole, norm_backward


@triton.jit
def layer_norm_backward_locked_kernel(
    dy_ptr, x_ptr,                       # (M, N), fp16, bf16, fp32 or fp64
    w_ptr,                               # (N,), any of those dtypes; read only if HAS_W
    mean_ptr, rstd_ptr,                  # (M,), fp32, or fp64 for an fp64 x
    dx_ptr,                              # (M, N), x's dtype, written
    dw_partial_ptr, db_partial_ptr,      # (GROUP, N), mean's dtype, contiguous, read and written
    lock_ptr,                            # (2 * GROUP,), int32, all 0 at the start
    # in elements; dx has unit column stride
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    N,
    HAS_W: tl.constexpr,
    GROUP: tl.constexpr,                 # shared buffers: row r adds into buffer r % GROUP
    BLOCK: tl.constexpr,                 # power of two >= N
):  # fmt: skip
    """dx for one row; its part of dw and db is added into a shared buffer.

    ``lock_ptr`` holds GROUP locks (0 free, 1 taken), then GROUP flags, 1 once a buffer was written.
    The first writer of a buffer stores instead of adding, so only locks and flags have to start at
    0, not the buffers.
    """
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    program = tl.program_id(0)
    row = program.to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    wide = cols.to(tl.int64)
    x = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
    dy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
    wdy = dy
    if HAS_W:
        wdy = dy * tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - mean) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(dx_ptr + row * stride_dx_row + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)

    dw = dy * xhat
    db = dy
    group = program % GROUP
    buffer = group * N + cols
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    written = tl.load(lock_ptr + GROUP + group)
    # each thread loads the flag, and one sets it: a late thread would load 1, and add what lies in
    # the buffer
    tl.debug_barrier()
    if written == 0:
        tl.store(lock_ptr + GROUP + group, 1)
    else:
        dw += tl.load(dw_partial_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_partial_ptr + buffer, dw, mask=mask)
    tl.store(db_partial_ptr + buffer, db, mask=mask)
    # one thread releases the lock; by then the stores of all threads must be done
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def _locked(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    check_whole("locked", mean, dtotal, dw, db, w_offset)
    M, N = x.shape
    _, block, num_warps = tables.resident(N)
    # with more buffers than rows, column_sums would add buffers that were never written
    group = min(tables.lock_group(N), M)
    dw_partial, db_partial = (operands.make_partials(group, x, total) for total in (dw, db))
    locks = torch.zeros(2 * group, dtype=torch.int32, device=x.device)
    layer_norm_backward_locked_kernel[(M,)](
        dy, x, operands.first_given(w, x), mean, rstd, dx, dw_partial, db_partial, locks,
        *operands.strides(dy), *operands.strides(x), dx.stride(0), N,
        HAS_W=w is not None, GROUP=group, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
    column_sums(dw_partial, db_partial, dw, db)


_DESIGNS = DESIGNS | {"locked": _locked}
ALGORITHMS = ("auto", *_DESIGNS)


def layer_norm_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, *,
    dtotal: Tensor | None = None, needs_dw: bool = True, needs_db: bool = True,
    bias_dtype: torch.dtype | None = None, w_offset: float = 0.0, algorithm: str = "auto",
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of :func:`course_lib.kernels.layer_norm.layer_norm_forward`.

    Args:
        dy, x: shape (..., N), fp32, fp16, bf16 or fp64, any strides, also 0 as in an expanded dy.
        w: shape (N,), or None for all ones.
        mean, rstd: shape (M,) for M rows, as the forward pass saved them: fp32, or fp64 for an
            fp64 x.
        dtotal: shape (..., N), if x is a sum that the next layer uses as well: the gradient from
            there. It is added to dx before dx is rounded.
        needs_dw, needs_db: whether dw and db are computed.
        bias_dtype: dtype of db; None takes w's dtype, or x's without w.
        w_offset: added to w, if there is a w, as in the forward pass. dw is the same for any.
        algorithm: one of ALGORITHMS; "auto" takes that of
            :func:`course_lib.kernels.launch.choice.choose_backward`.

    Returns: dx of x's shape and dtype, contiguous; dw and db, shape (N,), in w's dtype (x's without
    w) and ``bias_dtype``, or None where they are not needed.

    Raises: ValueError if the algorithm is unknown, or does not take these arguments.
    """
    return norm_backward(
        dy, x, w, mean, rstd, dtotal=dtotal, needs_dw=needs_dw, needs_db=needs_db,
        bias_dtype=bias_dtype, algorithm=algorithm, designs=_DESIGNS, w_offset=w_offset,
    )  # fmt: skip
