"""Optional task 18b: the loss of a long row in one sweep.

    lse[row] = log(sum of exp(x[row, :]))        loss[row] = lse[row] - x[row, target[row]]

The contract is that of 18a's forward kernel, but for one sentence: no element of x may be read more than once. (The target's logit may be read once
more.) So the maximum of a row is not known when its first block is added up.

x holds the logits: M rows of N columns, fp16, bf16 or fp32. target (M,) is int64, a column of each row from 0 to N - 1. loss and lse (M,) are
fp32. One program takes one row. BLOCK is a power of two, and N may be smaller, larger, or no multiple of it. Columns lie next to one another. Rows
are stride_x elements apart, and row * stride_x can pass 2^31. Compute in fp32.

Logits may be large: 10000, or -10000 in all columns. A logit may be -Inf (a column that the model forbids): its softmax is 0, and it spoils
nothing, also where a whole block is -Inf. No row has these alone, and the target is never one of them. A NaN or an Inf in a row makes loss and lse
of this row NaN or Inf, and no other row's.

The backward kernel of 18a works with this lse, too. The course launches the kernel for you. Check with the panel in lesson 18, or with
`course check 18b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_one_pass_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr,
    stride_x,
    N,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_x
    m = float("-inf")
    s = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(new == float("-inf"), 0.0, new)
        s = s * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = new
    lse = m + tl.log(s)
    logit = tl.load(x_row + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, lse - logit)
    tl.store(lse_ptr + row, lse)
    # END SOLUTION
