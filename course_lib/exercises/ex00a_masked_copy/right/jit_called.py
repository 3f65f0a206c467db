"""jit under its own name, called; annotations; an assert; the old kernel stays above it."""

from triton import jit, language as tl

BLOCK_DEFAULT = 1024


@jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK):
    y_ptr[:n] = x_ptr[:n]  # the first attempt, in NumPy's words


@jit()
def copy_kernel(x_ptr: tl.tensor, y_ptr: tl.tensor, n: tl.int32, BLOCK: tl.constexpr) -> None:
    tl.static_assert(BLOCK > 0)
    lanes = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = tl.where(lanes < n, 1, 0).to(tl.int1)
    tl.store(pointer=y_ptr + lanes, value=tl.load(x_ptr + lanes, mask=inside), mask=inside)


def launch(x):
    import torch

    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(len(x), BLOCK_DEFAULT),)](x, y, len(x), BLOCK_DEFAULT)
    return y


assert BLOCK_DEFAULT % 32 == 0
if __name__ == "__main__":
    import torch

    print(launch(torch.arange(10.0)))
