"""Right but different: a volatile load waits, and one acquiring atomic comes after it; the turn is given on with release."""

import triton
import triton.language as tl


@triton.jit
def wait_for(word_ptr, value):
    while tl.load(word_ptr, volatile=True) < value:
        pass
    while tl.atomic_add(word_ptr, 0, sem="acquire") < value:
        pass


@triton.jit
def add_in_order_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_buffer_ptr, db_buffer_ptr, state_ptr,
    stride_dy_row, stride_dy_col, stride_x, N, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    ticket = tl.atomic_add(state_ptr + 2 * GROUP, 1, sem="relaxed")
    row, group = ticket.to(tl.int64), ticket % GROUP
    cols = tl.arange(0, BLOCK)
    live = cols < N
    dw_at, db_at = dw_buffer_ptr + group * N + cols, db_buffer_ptr + group * N + cols
    wait_for(state_ptr + group, ticket - group)
    db = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=live, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
    dw = db * ((x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row))
    if ticket >= GROUP:
        dw = tl.load(dw_at, mask=live, other=0.0) + dw
        db = tl.load(db_at, mask=live, other=0.0) + db
    tl.store(dw_at, dw, mask=live)
    tl.store(db_at, db, mask=live)
    tl.debug_barrier()
    tl.atomic_add(state_ptr + group, GROUP, sem="release")
