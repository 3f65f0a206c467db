"""The old value is kept in a name while waiting."""

import triton
import triton.language as tl


@triton.jit
def add_to_buffers_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_buffer_ptr, db_buffer_ptr, lock_ptr,
    stride_dy_row, stride_dy_col, stride_x,   # elements; the columns of x are neighbours
    N,
    GROUP: tl.constexpr,                      # buffers, locks, flags
    BLOCK: tl.constexpr,                      # power of two >= N
):
    program = tl.program_id(0)
    row = program.to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
    dw = dy * (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
    db = dy
    group = program % GROUP
    buffer = group * N + cols
    old = tl.atomic_cas(lock_ptr + group, 0, 1)
    while old != 0:
        old = tl.atomic_cas(lock_ptr + group, 0, 1)
    written = tl.load(lock_ptr + GROUP + group)
    if written == 0:
        tl.store(lock_ptr + GROUP + group, 1)
    else:
        dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    tl.store(db_buffer_ptr + buffer, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit
def sum_buffers_kernel(
    dw_buffer_ptr, db_buffer_ptr, dw_ptr, db_ptr,
    M, N,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,   # columns a program
):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    buffers = tl.minimum(M, GROUP)
    for g in range(0, buffers):
        dw += tl.load(dw_buffer_ptr + g * N + cols, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + g * N + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=mask)
