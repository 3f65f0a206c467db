"""Combine functions for ``tl.reduce`` that bring several numbers through one reduction.

A reduction over a program's threads costs shuffles, two trips through shared memory and two barriers, whatever it carries.
Where two sums are wanted at the same place, one reduction of pairs waits once for what two wait for twice. Measured on an
H100: docs/kernels.md.

Source: ``tl.reduce`` of a tuple, as the Triton documentation shows it for Welford's merge.
"""

from __future__ import annotations

import triton


@triton.jit
def add_pairs(first, second, other_first, other_second):
    """Two sums at once."""
    return first + other_first, second + other_second


@triton.jit
def add_first_keep_rest(count, first, second, other_count, other_first, other_second):
    """A sum of counts, beside two numbers of which all lanes hold the same copy once the count says so."""
    return count + other_count, first, second
