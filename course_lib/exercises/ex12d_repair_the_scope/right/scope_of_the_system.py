"""Right but different: the atomics reach the whole system."""

import triton
import triton.language as tl


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
    stride_x,  # elements; the columns of x are neighbours
    N,
    GROUP: tl.constexpr,  # buffers
    BLOCK: tl.constexpr,  # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
    dw = dy * (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
    db = dy
    group = tl.program_id(0) % GROUP
    buffer = group * N + cols
    ticket = tl.atomic_add(lock_ptr + group, 1, sem="relaxed", scope="sys")
    while tl.atomic_add(lock_ptr + GROUP + group, 0, sem="acquire", scope="sys") != ticket:
        pass
    if ticket > 0:
        dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    tl.store(db_buffer_ptr + buffer, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_add(lock_ptr + GROUP + group, 1, sem="release", scope="sys")
