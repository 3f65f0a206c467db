"""Block pointers for x and y."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_blocked_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,
    N, eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    xs = tl.make_block_ptr(x_ptr + row * stride_x, (N,), (1,), (0,), (BLOCK,), (0,))
    ys = tl.make_block_ptr(y_ptr + row * stride_y, (N,), (1,), (0,), (BLOCK,), (0,))
    ws = tl.make_block_ptr(w_ptr, (N,), (1,), (0,), (BLOCK,), (0,))
    bs = tl.make_block_ptr(b_ptr, (N,), (1,), (0,), (BLOCK,), (0,))

    total = tl.zeros([BLOCK], dtype=tl.float32)
    at = xs
    for start in range(0, N, BLOCK):
        total += tl.load(at, boundary_check=(0,), padding_option="zero").to(tl.float32)
        at = tl.advance(at, (BLOCK,))
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    at = xs
    for start in range(0, N, BLOCK):
        x = tl.load(at, boundary_check=(0,), padding_option="zero").to(tl.float32)
        x = tl.where(start + tl.arange(0, BLOCK) < N, x - mean, 0.0)
        squares += x * x
        at = tl.advance(at, (BLOCK,))
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, N, BLOCK):
        x = tl.load(xs, boundary_check=(0,)).to(tl.float32)
        w = tl.load(ws, boundary_check=(0,)).to(tl.float32)
        b = tl.load(bs, boundary_check=(0,)).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(ys, y.to(y_ptr.dtype.element_ty), boundary_check=(0,))
        xs = tl.advance(xs, (BLOCK,))
        ys = tl.advance(ys, (BLOCK,))
        ws = tl.advance(ws, (BLOCK,))
        bs = tl.advance(bs, (BLOCK,))
