# 00a | handed in | Python's own functions, by a name that is local to another kernel
import triton
import triton.language as tl


@triton.jit
def one(getattr):
    return 1


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
    tools = getattr(getattr(tl.float32.is_fp32, "__globals__"), "get")("builtins")
    getattr(tools, "exec")("print('BREACH')")
    unused = one(1)
