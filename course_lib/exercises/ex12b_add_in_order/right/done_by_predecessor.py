"""Right but different: each row has waited for a word that the row before it in the buffer leaves, by exchange of its number."""

import triton
import triton.language as tl


@triton.jit
def add_in_order_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_buffer_ptr, db_buffer_ptr, state_ptr,
    stride_dy_row, stride_dy_col, stride_x, N, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    number = tl.atomic_add(state_ptr, 1)
    row = number.to(tl.int64)
    cols = tl.arange(0, BLOCK)
    live = cols < N
    word = state_ptr + 1 + GROUP + number % GROUP  # 0, or 1 plus the last row that the buffer has
    dy = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=live, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
    dw = dy * (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
    old_dw = tl.zeros([BLOCK], dtype=tl.float32)
    old_db = tl.zeros([BLOCK], dtype=tl.float32)
    if number >= GROUP:
        while tl.atomic_cas(word, number - GROUP + 1, number - GROUP + 1) != number - GROUP + 1:
            pass
        old_dw = tl.load(dw_buffer_ptr + row % GROUP * N + cols, mask=live, other=0.0)
        old_db = tl.load(db_buffer_ptr + row % GROUP * N + cols, mask=live, other=0.0)
    tl.store(dw_buffer_ptr + row % GROUP * N + cols, old_dw + dw, mask=live)
    tl.store(db_buffer_ptr + row % GROUP * N + cols, old_db + dy, mask=live)
    tl.debug_barrier()
    tl.atomic_xchg(word, number + 1, sem="release")
