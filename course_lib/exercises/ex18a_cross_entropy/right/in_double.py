"""Right but different: fp64 inside, three sweeps forward, of which one finds the target; block pointers backward."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    top = tl.load(x_ptr).to(tl.float64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.max(tl.load(x_ptr + cols, mask=cols < N, other=float("-inf")).to(tl.float64), axis=0))
    total = tl.zeros((), tl.float64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf")).to(tl.float64)
        total += tl.sum(tl.where(cols < N, tl.exp(x - top), 0.0), axis=0)
    distance = tl.zeros((), tl.float64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        here = (cols < N) & (cols == tl.load(target_ptr + row))
        distance += tl.sum(tl.load(x_ptr + cols, mask=here, other=0.0).to(tl.float64), axis=0)
    lse = top + tl.log(total)
    tl.store(loss_ptr + row, (lse - distance).to(tl.float32))
    tl.store(lse_ptr + row, lse.to(tl.float32))


@triton.jit
def cross_entropy_dx_kernel(dloss_ptr, x_ptr, target_ptr, lse_ptr, dx_ptr, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_block = tl.make_block_ptr(x_ptr + row * stride_x, (N,), (1,), (0,), (BLOCK,), (0,))
    dx_block = tl.make_block_ptr(dx_ptr + row * stride_dx, (N,), (1,), (0,), (BLOCK,), (0,))
    lse = tl.load(lse_ptr + row).to(tl.float64)
    for start in range(0, N, BLOCK):
        x = tl.load(x_block, boundary_check=(0,)).to(tl.float64)
        hot = tl.where(start + tl.arange(0, BLOCK) == tl.load(target_ptr + row), 1.0, 0.0)
        dx = (tl.exp(x - lse) - hot) * tl.load(dloss_ptr + row)
        tl.store(dx_block, dx.to(dx_ptr.dtype.element_ty), boundary_check=(0,))
        x_block = tl.advance(x_block, (BLOCK,))
        dx_block = tl.advance(dx_block, (BLOCK,))
