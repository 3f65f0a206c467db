"""Optional task 12d: repair the scope.

The kernel adds up dw and db as in 12a: row r adds its part to buffer r % GROUP. The rows of a buffer take turns as people do
who draw a number at a counter: a program draws the next ticket, waits until its ticket is called, adds its row, and calls the
next one. Who has ticket 0 finds nothing in the buffer and stores.

The sums are right in nearly every run, and the memory orders are right, too. Yet programs may still meet in a buffer.
Repair the kernel, so that it is right in every order that the programs may run in, and on every GPU.

lock_ptr holds 2 * GROUP integers, all 0 before the launch: for each buffer the next ticket to draw, then for each buffer the
ticket that is called. Buffers, inputs and strides are as in 12a.

The course launches the kernel for you. Check with the panel in lesson 12, or with `course check 12d` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def add_to_buffers_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_buffer_ptr, db_buffer_ptr, lock_ptr,
    stride_dy_row, stride_dy_col, stride_x,   # elements; the columns of x are neighbours
    N,
    GROUP: tl.constexpr,                      # buffers
    BLOCK: tl.constexpr,                      # power of two >= N
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
    # REPAIR: Whom do these atomics reach?
    ticket = tl.atomic_add(lock_ptr + group, 1, sem="relaxed", scope="cta")
    while tl.atomic_add(lock_ptr + GROUP + group, 0, sem="acquire", scope="cta") != ticket:
        pass
    if ticket > 0:
        dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    tl.store(db_buffer_ptr + buffer, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_add(lock_ptr + GROUP + group, 1, sem="release", scope="cta")
