"""Right but different: pairs of maximum and sum are merged by tl.reduce; backward goes from the last block to the first."""

import triton
import triton.language as tl


@triton.jit
def merge(m_a, s_a, m_b, s_b):
    m = tl.maximum(m_a, m_b)
    a = tl.where(m_a == m, 1.0, tl.exp(m_a - m))
    b = tl.where(m_b == m, 1.0, tl.exp(m_b - m))
    return m, s_a * a + s_b * b


@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m, s = float("-inf"), 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        live = tl.where((cols < N) & (x != float("-inf")), 1.0, 0.0)
        m_x, s_x = tl.reduce((x, live), 0, merge)
        m, s = merge(m, s, m_x, s_x)
    lse = tl.log(s) + m
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - tl.load(x_ptr + row * stride_x + tl.load(target_ptr + row)))


@triton.jit
def cross_entropy_dx_kernel(dloss_ptr, x_ptr, target_ptr, lse_ptr, dx_ptr, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    dloss = tl.load(dloss_ptr + row)
    blocks = (N + BLOCK - 1) // BLOCK
    for i in range(blocks):
        cols = (blocks - 1 - i) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=float("-inf"))
        p = dloss * tl.exp(x.to(tl.float32) - tl.load(lse_ptr + row))
        p -= tl.where(cols == tl.load(target_ptr + row), dloss, 0.0)
        tl.store(dx_ptr + row * stride_dx + cols, p.to(dx_ptr.dtype.element_ty), mask=cols < N)
