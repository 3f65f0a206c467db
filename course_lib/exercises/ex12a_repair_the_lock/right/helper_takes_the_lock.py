"""The lock in two helpers, and a flag by an atomic; the sum in a second kernel with a static bound."""

import triton
import triton.language as tl

FREE = tl.constexpr(0)
TAKEN = tl.constexpr(1)


@triton.jit
def take(lock_ptr):
    while tl.atomic_cas(lock_ptr, FREE, TAKEN, sem="acq_rel") == TAKEN:
        pass


@triton.jit
def give_back(lock_ptr, flag_ptr):
    tl.debug_barrier()
    tl.store(flag_ptr, 1)
    tl.atomic_xchg(lock_ptr, FREE, sem="release")


@triton.jit
def add_to_buffers_kernel(
    dy_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    dw_buffer_ptr,
    db_buffer_ptr,
    lock_ptr,
    stride_dy_row,
    stride_dy_col,
    stride_x,
    N,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0).to(tl.float32)
    db = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=inside, other=0.0).to(tl.float32)
    dw = db * ((x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row))
    group = tl.program_id(0) % GROUP
    dw_at, db_at = dw_buffer_ptr + group * N + cols, db_buffer_ptr + group * N + cols
    take(lock_ptr + group)
    if tl.load(lock_ptr + GROUP + group) != 0:
        dw += tl.load(dw_at, mask=inside, other=0.0)
        db += tl.load(db_at, mask=inside, other=0.0)
    tl.store(dw_at, dw, mask=inside)
    tl.store(db_at, db, mask=inside)
    give_back(lock_ptr + group, lock_ptr + GROUP + group)


@triton.jit
def sum_buffers_kernel(dw_buffer_ptr, db_buffer_ptr, dw_ptr, db_ptr, M, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for group in tl.static_range(GROUP):
        live = (cols < N) & (group < M)
        dw += tl.load(dw_buffer_ptr + group * N + cols, mask=live, other=0.0)
        db += tl.load(db_buffer_ptr + group * N + cols, mask=live, other=0.0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=cols < N)
