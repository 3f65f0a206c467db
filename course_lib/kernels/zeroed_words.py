"""Words that start at 0, for kernels whose programs exchange data. The launch that sets them to 0
takes almost no extra time.

The kernel that uses the words is a programmatic dependent launch: its programs start while the
kernel here still runs, and wait for its end with ``gdc_wait`` before they touch a word. With
PyTorch's own ``zeros``, the next kernel would start only after it has ended.

No program waits forever for this: a dependent launch begins when every program of the kernel here
has started, so waiting programs never take room that this kernel still needs.

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
    BLOCK: tl.constexpr,   # words per program
):  # fmt: skip
    """Set the words to 0. Bytes: writes 8 per word."""
    gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(words_ptr + at, tl.zeros([BLOCK], dtype=tl.int64), mask=at < count)


def make_zeroed_words(count: int, device: torch.device) -> tuple[Tensor, bool]:
    """Return ``count`` int64 words, shape (count,), and whether the kernel that uses them must be a
    dependent launch and wait."""
    if not has_dependent_launch(device):
        return torch.zeros(count, dtype=torch.int64, device=device), False
    words = torch.empty(count, dtype=torch.int64, device=device)
    launch(zero_words_kernel, (-(-count // _BLOCK),), words, count, BLOCK=_BLOCK, num_warps=4)
    return words, True
