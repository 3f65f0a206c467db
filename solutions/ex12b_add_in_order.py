"""Optional task 12b: the same bits in every order.

dw is the sum over the rows of dy * xhat, where xhat is (x - mean) * rstd, and db is the sum of dy. Row r adds its part to
buffer r % GROUP of each, as in 12a. M programs are launched. Each of them does the work of one row.

The same inputs must give the same bits in whatever order the programs run: row r is added before row r + GROUP.

A GPU starts the programs in any order, and it may have room for only a few of them, or for one. The others start when one
has ended. No program may wait for ever.

state holds 1 + 2 * GROUP integers of 32 bits, all 0 before the launch. What each of them means is yours to decide. The
buffers are fp32, shape (GROUP, N), and hold anything at all before the launch. A buffer that no row belongs to stays as it
is. dy, x, mean and rstd are as in 12a: dy has two strides, dy and x come in fp16, bf16 or fp32, offsets can pass 2^31.

The course launches the kernel for you. Check with the panel in lesson 12, or with `course check 12b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def add_in_order_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_buffer_ptr, db_buffer_ptr, state_ptr,
    stride_dy_row, stride_dy_col, stride_x,   # elements; the columns of x are neighbours
    N,
    GROUP: tl.constexpr,                      # buffers
    BLOCK: tl.constexpr,                      # power of two >= N
):
    # BEGIN SOLUTION
    #:
    ticket = tl.atomic_add(state_ptr, 1, sem="relaxed")
    group = ticket % GROUP
    turn = ticket // GROUP
    turn_ptr = state_ptr + 1 + group
    row = ticket.to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
    dw = dy * (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
    db = dy
    buffer = group * N + cols
    now = tl.atomic_add(turn_ptr, 0)
    while now != turn:
        now = tl.atomic_add(turn_ptr, 0)
    if turn > 0:
        dw += tl.load(dw_buffer_ptr + buffer, mask=mask, other=0.0)
        db += tl.load(db_buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(dw_buffer_ptr + buffer, dw, mask=mask)
    tl.store(db_buffer_ptr + buffer, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(turn_ptr, turn + 1)
    # END SOLUTION
