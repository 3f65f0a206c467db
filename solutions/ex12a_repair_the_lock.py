"""Exercise 12a: repair the lock.

dw is the sum over the rows of dy * xhat, db that of dy. Every row has a program of its own, and row r adds its part into
buffer r % GROUP. Rows that share a buffer take turns by a lock. A second kernel then adds up the buffers.

`lock_ptr` holds 2 * GROUP integers, all 0 before the launch: first GROUP locks (0 free, 1 taken), then GROUP flags (0 while
nobody has written to the buffer). The buffers hold anything at all before the launch: the first row to come stores, the
others add. Buffers are fp32, shape (GROUP, N). With fewer rows than buffers, some buffers are never written.

Both kernels run, and both are wrong. In what order the rows reach a buffer is not yours to decide, and the last bits of
the sums may depend on it. All else must be right in every order that the programs may run in.

The course launches the kernels for you. Check with the panel in lesson 12, or with `course check 12a` in a terminal.
"""

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
    # BEGIN SOLUTION
    #: Five things are wrong in these lines. Three of them show in some order of the programs. Two show in no order, because they
    #: lie between the threads of one program. Is what you know about the buffer still true when you use it?
    #| written = tl.load(lock_ptr + GROUP + group)
    #| while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
    #|     pass
    #| if written == 0:
    #|     tl.store(lock_ptr + GROUP + group, 1)
    #| else:
    #|     dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
    #|     db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    #| tl.atomic_xchg(lock_ptr, 0)
    #| tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    #| tl.store(db_buffer_ptr + buffer, db, mask=mask)
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    written = tl.atomic_xchg(lock_ptr + GROUP + group, 1)
    if written == 1:
        dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    tl.store(db_buffer_ptr + buffer, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)
    # END SOLUTION


@triton.jit
def sum_buffers_kernel(
    dw_buffer_ptr, db_buffer_ptr, dw_ptr, db_ptr,
    M, N,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,   # columns per program
):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    # BEGIN SOLUTION
    #: M may be smaller than GROUP. How many buffers hold a sum?
    #| buffers = GROUP
    buffers = tl.minimum(M, GROUP)
    # END SOLUTION
    for g in range(0, buffers):
        dw += tl.load(dw_buffer_ptr + g * N + cols, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + g * N + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=mask)
