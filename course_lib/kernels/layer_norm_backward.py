"""LayerNorm backward, six ways to the same gradients.

With ``wdy = w * dy``, ``c1 = mean(xhat * wdy)`` and ``c2 = mean(wdy)`` over the columns of a row,

    dx = (wdy - (xhat * c1 + c2)) * rstd        dw = sum over rows of dy * xhat        db = sum over rows of dy

``dx`` needs its own row only. ``dw`` and ``db`` need every row, and rows belong to different programs. Passes over M N
elements of x, dy and dx (3 is the least), and what each design does about the sums:

- two-stage: ``dx`` by rows, then ``dw`` and ``db`` by columns of row chunks, then a sum over the chunks. 5 passes, no
  locks, no scratch worth speaking of.
- locked: each row adds its part into one of GROUP shared buffers under a spin lock, as the Triton tutorial does it; 3
  passes plus the traffic on the buffers. Who comes first decides the order of the additions, so bits change between runs.
- persistent: a few programs per multiprocessor loop over tiles of rows, read x and dy once, and keep their part of dw and
  db in registers until the end. 3 passes plus 16 P N bytes of partial sums, P programs. No locks, the same bits every time.
- columns, for rows of any length: c1 and c2 by rows in one kernel, then dx and the partial sums by columns. 5 passes.
- two tiles (two_tiles_backward.py), for rows of up to PERSISTENT_LIMIT columns, far from a power of two and no multiple of 16:
  persistent. 3 passes.
- split (split_row_backward.py), for rows above PERSISTENT_LIMIT: persistent, with a row's columns dealt out to programs. 3 passes.

mean and rstd come from the forward pass in fp32 (bf16 statistics would put xhat off by several percent at mean/std = 100).
fp64 inputs are computed in fp64.

Sources: the formulas are derived in lesson 02; the locked design is the Triton tutorial's "Layer Normalization", with its
strides, buffer and barrier mistakes mended; the persistent one follows flash-attention's and quack's backward kernels.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents

from course_lib.kernels import split_row_backward, two_tiles_backward
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import tables


@triton.jit(do_not_specialize=["M"])
def layer_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,   # in elements; dx has unit column stride
    M, N,
    HAS_W: tl.constexpr,
    ROWS: tl.constexpr,                                                        # rows a program
    BLOCK: tl.constexpr,                                                       # power of two >= N
):  # fmt: skip
    """dx for a tile of ROWS whole rows. Bytes: reads x and dy, writes dx (3 M N)."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    wide = cols.to(tl.int64)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    wdy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0, eviction_policy="evict_first").to(
        ACC
    )
    if HAS_W:
        wdy *= tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[None, :]
    mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    xhat = (x - mean[:, None]) * rstd[:, None]  # not zero in a padded lane; wdy is, and every use of it is a product
    c1 = tl.sum(xhat * wdy, axis=1) / N
    c2 = tl.sum(wdy, axis=1) / N
    dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
    tl.store(dx_ptr + rows[:, None] * stride_dx_row + cols[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def layer_norm_column_partials_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,
    M, N, rows_a_chunk,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Sums of dy * xhat and of dy over one chunk of rows, for BLOCK_N columns. Bytes: reads x and dy (2 M N)."""
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    db = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    first = chunk.to(tl.int64) * rows_a_chunk
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = first + within
        row_mask = (within < rows_a_chunk) & (rows < M)  # the next chunk's rows are not this one's
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        dw += dy * (x - mean[:, None]) * rstd[:, None]
        db += dy
    offsets = chunk.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + offsets, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_partial_ptr + offsets, tl.sum(db, axis=0), mask=cols < N)


@triton.jit
def layer_norm_backward_locked_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr, lock_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    N,
    HAS_W: tl.constexpr,
    GROUP: tl.constexpr,      # shared buffers: row r adds into buffer r % GROUP
    BLOCK: tl.constexpr,
):  # fmt: skip
    """dx for one row, and its part of dw and db added into a shared buffer.

    ``lock_ptr`` holds GROUP locks (0 free, 1 taken), then GROUP counts that tell the first writer of a buffer to store
    rather than add; all start at 0, the buffers need not.
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
    if written == 0:
        tl.store(lock_ptr + GROUP + group, 1)
    else:
        dw += tl.load(dw_partial_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_partial_ptr + buffer, dw, mask=mask)
    tl.store(db_partial_ptr + buffer, db, mask=mask)
    tl.debug_barrier()  # one thread releases the lock; the stores of all the others must have landed by then
    tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit(do_not_specialize=["M"])
def layer_norm_backward_persistent_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N,
    HAS_W: tl.constexpr,
    FULL: tl.constexpr,       # N == BLOCK: no column mask
    ROWS: tl.constexpr,       # rows a tile
    BLOCK: tl.constexpr,      # power of two >= N
    STAGES: tl.constexpr,     # tiles in flight
    ONCE: tl.constexpr = "evict_first",   # the mark of what passes through the caches once
    DEPENDENT: tl.constexpr = False,      # the next kernel may start early
):  # fmt: skip
    """dx for tiles of rows, and one partial row of dw and db a program.

    Program p takes tiles p, p + P, p + 2 P, ... so its partial sums depend on P and the launch table, on no timing.
    Bytes: reads x and dy, writes dx (3 M N), and 8 P N of partial sums.
    """
    if DEPENDENT:
        gdc_launch_dependents()
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    wide = cols.to(tl.int64)[None, :]
    if HAS_W:
        if FULL:
            w = tl.load(w_ptr + cols, eviction_policy="evict_last").to(ACC)
        else:
            w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)
    dw = tl.zeros([ROWS, BLOCK], dtype=ACC)
    db = tl.zeros([ROWS, BLOCK], dtype=ACC)
    for tile in tl.range(program, tl.cdiv(M, ROWS), tl.num_programs(0), num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        row_mask = rows < M
        if FULL and ROWS == 1:
            x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, eviction_policy=ONCE).to(ACC)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, eviction_policy=ONCE).to(ACC)
        else:
            mask = row_mask[:, None] & col_mask[None, :]
            x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0, eviction_policy=ONCE).to(ACC)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0, eviction_policy=ONCE).to(ACC)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        xhat = (x - mean[:, None]) * rstd[:, None]
        wdy = dy
        if HAS_W:
            wdy = dy * w[None, :]
        c1 = tl.sum(xhat * wdy, axis=1) / N
        c2 = tl.sum(wdy, axis=1) / N
        dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
        target = dx_ptr + rows[:, None] * stride_dx_row + cols[None, :]
        if FULL and ROWS == 1:
            tl.store(target, dx.to(dx_ptr.dtype.element_ty), eviction_policy=ONCE)
        else:
            tl.store(target, dx.to(dx_ptr.dtype.element_ty), mask=row_mask[:, None] & col_mask[None, :], eviction_policy=ONCE)
        dw += dy * xhat
        db += dy
    partial = program.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + partial, tl.sum(dw, axis=0), mask=col_mask)
    tl.store(db_partial_ptr + partial, tl.sum(db, axis=0), mask=col_mask)


@triton.jit
def layer_norm_row_sums_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, c1_ptr, c2_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,
    N,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,      # columns a step
):  # fmt: skip
    """c1 and c2 of one row of any length. Bytes: reads x and dy (2 M N)."""
    ACC: tl.constexpr = c1_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    products = tl.zeros([BLOCK], dtype=ACC)
    total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        wide = cols.to(tl.int64)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        wdy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        if HAS_W:
            wdy *= tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
        products += (x - mean) * rstd * wdy
        total += wdy
    tl.store(c1_ptr + row, tl.sum(products, axis=0) / N)
    tl.store(c2_ptr + row, tl.sum(total, axis=0) / N)


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def layer_norm_backward_columns_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, c1_ptr, c2_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N, rows_a_chunk,
    HAS_W: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dx and partial sums for BLOCK_N columns of one chunk of rows, c1 and c2 given. Bytes: reads x and dy, writes dx (3 M N)."""
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(ACC)
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    db = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    first = chunk.to(tl.int64) * rows_a_chunk
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = first + within
        row_mask = (within < rows_a_chunk) & (rows < M)
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        c1 = tl.load(c1_ptr + rows, mask=row_mask, other=0.0)
        c2 = tl.load(c2_ptr + rows, mask=row_mask, other=0.0)
        xhat = (x - mean[:, None]) * rstd[:, None]
        wdy = dy
        if HAS_W:
            wdy = dy * w[None, :]
        dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
        tl.store(dx_ptr + rows[:, None] * stride_dx_row + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * xhat
        db += dy
    offsets = chunk.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + offsets, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_partial_ptr + offsets, tl.sum(db, axis=0), mask=cols < N)


ALGORITHMS = ("auto", "persistent", "two tiles", "split", "two-stage", "locked", "columns")


def layer_norm_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, *,
    bias_dtype: torch.dtype | None = None, algorithm: str = "auto",
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of :func:`course_lib.kernels.layer_norm.layer_norm_forward`.

    Args:
        dy, x: shape (M, N), fp32, fp16, bf16 or fp64, any strides, an expanded dy's zeros included.
        w: shape (N,), or None for all ones.
        mean, rstd: shape (M,), as the forward pass saved them: fp32, or fp64 for an fp64 x.
        bias_dtype: of db; None takes w's dtype, or x's without w.
        algorithm: one of ALGORITHMS; "auto" is what tables.backward says.

    Returns: dx of x's shape and dtype, contiguous; dw and db, shape (N,), in w's dtype (x's without w) and ``bias_dtype``.

    Raises: ValueError if the algorithm is unknown, or N is too long for it.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm is {algorithm!r}; it can be {', '.join(map(repr, ALGORITHMS))}")
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    w_dtype = x.dtype if w is None else w.dtype
    b_dtype = bias_dtype or w_dtype
    if M == 0:
        return dx, torch.zeros(N, dtype=w_dtype, device=x.device), torch.zeros(N, dtype=b_dtype, device=x.device)
    if algorithm == "auto":
        algorithm = tables.backward(x)
    run = {
        "persistent": _persistent,
        "split": split_row_backward.split_backward,
        "two tiles": two_tiles_backward.two_tiles_backward,
        "two-stage": _two_stage,
        "locked": _locked,
        "columns": _columns,
    }[algorithm]
    dw_partial, db_partial = run(dy, x, None if w is None else w.contiguous(), mean, rstd, dx)
    return dx, *column_sums(dw_partial, db_partial, w_dtype, b_dtype)


def _partials(P: int, N: int, like: Tensor) -> tuple[Tensor, Tensor]:
    dw = torch.empty((P, N), dtype=tables.statistics_dtype(like.dtype), device=like.device)
    return dw, torch.empty_like(dw)  # halves of one tensor would begin at another alignment with every other P


def _strides(dy: Tensor, x: Tensor) -> tuple[int, int, int, int]:
    return tables.row_stride(dy), dy.stride(1), tables.row_stride(x), x.stride(1)


def _persistent(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    M, N = x.shape
    launch = tables.persistent(N)
    programs = min(triton.cdiv(M, launch.rows), launch.programs_a_processor * tables.processors(x.device))
    dw_partial, db_partial = _partials(programs, N, x)
    layer_norm_backward_persistent_kernel[(programs,)](
        dy, x, x if w is None else w, mean, rstd, dx, dw_partial, db_partial, *_strides(dy, x), dx.stride(0), M, N,
        HAS_W=w is not None, FULL=launch.block == N, ROWS=launch.rows, BLOCK=launch.block, STAGES=launch.stages,
        ONCE=tables.once(N), DEPENDENT=tables.has_dependent_launch(x.device), num_warps=launch.num_warps,
    )  # fmt: skip
    return dw_partial, db_partial


def _two_stage(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    M, N = x.shape
    rows, block, num_warps = tables.resident(N)
    layer_norm_dx_kernel[(triton.cdiv(M, rows),)](
        dy, x, x if w is None else w, mean, rstd, dx, *_strides(dy, x), dx.stride(0), M, N,
        HAS_W=w is not None, ROWS=rows, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
    chunks, rows_a_chunk = tables.chunks(M)
    dw_partial, db_partial = _partials(chunks, N, x)
    layer_norm_column_partials_kernel[(triton.cdiv(N, 128), chunks)](
        dy, x, mean, rstd, dw_partial, db_partial, *_strides(dy, x), M, N, rows_a_chunk, BLOCK_M=32, BLOCK_N=128, num_warps=4
    )
    return dw_partial, db_partial


def _locked(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    M, N = x.shape
    _, block, num_warps = tables.resident(N)
    group = min(tables.lock_group(N), M)  # with fewer rows than buffers some would be summed that nobody wrote
    dw_partial, db_partial = _partials(group, N, x)
    locks = torch.zeros(2 * group, dtype=torch.int32, device=x.device)
    layer_norm_backward_locked_kernel[(M,)](
        dy, x, x if w is None else w, mean, rstd, dx, dw_partial, db_partial, locks, *_strides(dy, x), dx.stride(0), N,
        HAS_W=w is not None, GROUP=group, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
    return dw_partial, db_partial


def _columns(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    M, N = x.shape
    _, block, num_warps = tables.blocked(N)
    c1 = torch.empty_like(mean)
    c2 = torch.empty_like(mean)
    stand_in = x if w is None else w
    layer_norm_row_sums_kernel[(M,)](
        dy, x, stand_in, mean, rstd, c1, c2, *_strides(dy, x), N, HAS_W=w is not None, BLOCK=block, num_warps=num_warps
    )
    chunks, rows_a_chunk = tables.chunks(M)
    dw_partial, db_partial = _partials(chunks, N, x)
    layer_norm_backward_columns_kernel[(triton.cdiv(N, 1024), chunks)](
        dy, x, stand_in, mean, rstd, c1, c2, dx, dw_partial, db_partial, *_strides(dy, x), dx.stride(0), M, N, rows_a_chunk,
        HAS_W=w is not None, BLOCK_M=4, BLOCK_N=1024, num_warps=8,
    )  # fmt: skip
    return dw_partial, db_partial
