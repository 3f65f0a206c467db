"""Words that start at 0, for kernels whose programs tell one another something: the launch that sets them is nearly
hidden.

The kernel that uses the words is a programmatic dependent launch: its programs take their places while this one still
runs, and wait for its end with ``gdc_wait`` before they touch a word. PyTorch's own ``zeros`` is a launch like any
other, and the next one begins after it has ended.

Nobody waits forever for that: a dependent launch begins when every program of this kernel has started, so those that
wait never hold a place that this kernel still needs.

Source: NVIDIA's CUDA programming guide, "Programmatic Dependent Launch and Synchronization".
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents

from course_lib.kernels.launch.device import has_dependent_launch
from course_lib.kernels.launch.launcher import launch

_BLOCK = 1024


@triton.jit(do_not_specialize=["count"])
def zero_words_kernel(
    words_ptr,             # (count,), int64, written
    count,
    BLOCK: tl.constexpr,   # words a program
):  # fmt: skip
    """Bytes: writes 8 a word."""
    gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(words_ptr + at, tl.zeros([BLOCK], dtype=tl.int64), mask=at < count)


def make_zeroed_words(count: int, device: torch.device) -> tuple[Tensor, bool]:
    """``count`` words, shape (count,), int64, and whether the kernel that uses them must wait: it is a dependent launch."""
    if not has_dependent_launch(device):
        return torch.zeros(count, dtype=torch.int64, device=device), False
    words = torch.empty(count, dtype=torch.int64, device=device)
    launch(zero_words_kernel, (-(-count // _BLOCK),), words, count, BLOCK=_BLOCK, num_warps=4)
    return words, True
