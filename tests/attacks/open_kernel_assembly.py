# 00a | handed in | assembly, which nobody can watch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [tl.load(x_ptr + offsets, mask=mask)], tl.float32, True, 1)
    tl.store(y_ptr + offsets, x, mask=mask)
