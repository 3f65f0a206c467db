"""What lesson 06 counts in compiled kernels, and the times that it shows."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

import course_lib
from course_lib.base.errors import CourseError
from course_lib.lessons.instruction_counts import count_instructions
from course_lib.lessons.norm_times import norm_times, stored_norm_times


@triton.jit
def one_block_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(sum_ptr, tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), axis=0))


@triton.jit
def block_by_block_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), axis=0)
    tl.store(sum_ptr, total)


@pytest.mark.parametrize(("blocks", "num_warps"), [(1, 4), (2, 4), (16, 4), (8, 1)])
def test_a_loop_counts_once_a_block(blocks, num_warps):
    counts = count_instructions(block_by_block_kernel, 512, num_warps, N=512 * blocks)
    assert counts["shuffles"] == blocks * (7 if num_warps == 4 else 5)
    assert (counts["barriers"] > 0) == (num_warps > 1)


def test_a_kernel_without_a_loop_has_none_to_count():
    with pytest.raises(CourseError, match="no loop"):
        count_instructions(one_block_kernel, 512, 4, N=512)


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="where there is a GPU, it measures")
def test_times_are_of_the_columns_that_were_asked_for():
    times, stored = norm_times(1024, 8192), stored_norm_times()
    assert times.columns == [1024, 8192] and set(times.columns) < set(stored.columns)
    assert (
        times.us("layer_norm", "resident", 8192)
        == stored.us("layer_norm", "resident", 8192)
        > times.copy_us(8192)
    )
    with pytest.raises(KeyError):
        times.us("layer_norm", "resident", 4096)
