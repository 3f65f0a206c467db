"""Names imported one by one, a helper with a default, and the lanes merged by halves in a reduction."""

from triton import jit
from triton.language import arange, constexpr, float32, int64, load, maximum, program_id, reduce, store, where, zeros


@jit
def safe_share(n_b, n, least: constexpr = 1.0):
    return n_b / maximum(n, least)


@jit
def combine(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = safe_share(n_b, n)
    gap = mean_b - mean_a
    return n, mean_a + gap * share, M2_a + (M2_b + gap * gap * (n_a * share))


@jit
def welford_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: constexpr):
    row = program_id(0).to(int64)
    seen, mean, M2 = zeros([BLOCK], float32), zeros([BLOCK], float32), zeros([BLOCK], float32)
    for start in range(0, N, BLOCK):
        cols = start + arange(0, BLOCK)
        x = load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(float32)
        seen = where(cols < N, seen + 1.0, seen)
        before = x - mean
        mean = where(cols < N, mean + safe_share(before, seen), mean)
        M2 = where(cols < N, M2 + before * (x - mean), M2)
    n, row_mean, row_M2 = reduce((seen, mean, M2), axis=0, combine_fn=combine)
    store(mean_ptr + row, row_mean)
    store(var_ptr + row, row_M2 / n)
