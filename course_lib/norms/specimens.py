"""LayerNorms for tests: kernels with bugs that real programs had, and right ones that differ in
everything a kernel may choose.

Each does in PyTorch operations what a Triton kernel would do, with the same blocks, offsets and
roundings, so that it takes any shape quickly. Lesson 17 shows kernels with the same bugs, and
proves that they give the same numbers. Exercise 17a tests them. Arithmetic is in fp32, as in a
kernel. An element that a kernel reads outside its tensor is 0 here: its true value is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor

from course_lib.norms.specimen_call import make_checked

Statistics = Callable[[Tensor], tuple[Tensor, Tensor]]  # from x (M, N) to mean and variance (M, 1)
Rows = Callable[[Tensor], Tensor]  # from terms (M, N) to their sum over the rows, (N,)


def make_plain(name: str, *, backward: bool) -> Callable[..., Any]:
    """Return the kernel called ``name`` as a function with the common call of
    :func:`course_lib.norms.specimen_call.make_checked`."""
    return make_checked((BACKWARD if backward else FORWARD)[name], backward=backward)


# ---- statistics of the rows


def two_pass(x: Tensor) -> tuple[Tensor, Tensor]:
    mean = x.mean(1, keepdim=True)
    return mean, (x - mean).square().mean(1, keepdim=True)


def _two_pass_in_blocks(x: Tensor, block: int) -> tuple[Tensor, Tensor]:
    N, pieces = x.shape[1], x.split(block, dim=1)
    mean = _add([piece.sum(1, keepdim=True) for piece in pieces]) / N
    return mean, _add([(piece - mean).square().sum(1, keepdim=True) for piece in pieces]) / N


def _in_double(x: Tensor) -> tuple[Tensor, Tensor]:
    mean, var = two_pass(x.double())
    return mean.float(), var.float()


def _merge_blocks(x: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """Compute a Welford state per block and merge the states as Chan does."""
    n, mean, M2 = 0, torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for piece in x.split(block, dim=1):
        m = piece.shape[1]
        piece_mean, var = two_pass(piece)
        apart = piece_mean - mean
        mean = mean + apart * (m / (n + m))
        M2 = M2 + var * m + apart.square() * (n * m / (n + m))
        n += m
    return mean, M2 / n


def _shift_and_sum(x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the statistics in one pass over the differences from the mean of the row's first
    numbers."""
    shift = x[:, :32].mean(1, keepdim=True)
    mean, squares = (x - shift).mean(1, keepdim=True), (x - shift).square().mean(1, keepdim=True)
    return shift + mean, (squares - mean.square()).clamp(min=0)


def padded(x: Tensor, block: int = 0, divide_by_lanes: bool = False) -> tuple[Tensor, Tensor]:
    """Compute the statistics with a missing mask: the spare lanes hold 0, and their squared
    distance from the mean enters the variance.

    Args:
        block: columns per block; 0 takes one block, the smallest power of two that has room for the
            row.
        divide_by_lanes: divide by the number of all lanes instead of N.
    """
    N = x.shape[1]
    lanes = -(-N // block) * block if block else 1 << (N - 1).bit_length()
    divisor = lanes if divide_by_lanes else N
    row = torch.nn.functional.pad(x, (0, lanes - N))
    mean = row.sum(1, keepdim=True) / divisor
    return mean, (row - mean).square().sum(1, keepdim=True) / divisor


def one_pass(
    x: Tensor, block: int = 0, clamp: bool = False, lost: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Compute the variance as the mean of the squares minus the square of the mean, in fp32.

    Args:
        lost: relative amount by which the mean of the squares is too small.
    """
    pieces = x.split(block or x.shape[1], dim=1)
    mean = _add([piece.sum(1, keepdim=True) for piece in pieces]) / x.shape[1]
    squares = _add([piece.square().sum(1, keepdim=True) for piece in pieces]) / x.shape[1]
    var = squares * (1 - lost) - mean.square()
    return mean, var.clamp(min=0) if clamp else var


def _add(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# ---- forward


def forward(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    eps: float,
    *,
    statistics: Statistics = two_pass,
    nudge: float = 0.0,
) -> Tensor:
    """Compute y.

    Args:
        nudge: relative error of rstd, such as that of a GPU's approximate reciprocal root.
    """
    rows = x.reshape(-1, x.shape[-1]).float()
    return _normalise(rows, rows, w, b, eps, statistics, nudge).reshape(x.shape).to(x.dtype)


def _normalise(
    rows: Tensor,
    again: Tensor,
    w: Tensor,
    b: Tensor,
    eps: float,
    statistics: Statistics = two_pass,
    nudge: float = 0.0,
) -> Tensor:
    """Normalise ``again``, the kernel's second read of x, by the statistics of ``rows``, its first
    read."""
    mean, var = statistics(rows)
    rstd = (var + eps).rsqrt() * (1 + nudge)
    return (again - mean) * rstd * w.float() + b.float()


def _read(x: Tensor, row_stride: int, column_stride: int) -> Tensor:
    """Return the numbers (M, N) that a kernel finds with these strides in the memory of the matrix
    ``x``."""
    room = int(x.untyped_storage().nbytes() // x.element_size() - x.storage_offset())
    memory = x.as_strided((room,), (1,))
    offsets = (
        torch.arange(x.shape[0])[:, None] * row_stride + torch.arange(x.shape[1]) * column_stride
    )
    return torch.where(torch.lt(offsets, room), memory[offsets.clamp(max=room - 1)], 0).float()


def forward_by_offsets(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    eps: float,
    *,
    rows: str = "stride",
    columns: str = "stride",
    only_again: bool = False,
) -> Tensor:
    """Compute y from the elements that a kernel with wrong offsets reads.

    Args:
        rows: "N" takes N as the distance between rows.
        columns: "1" takes the columns as adjacent.
        only_again: use the wrong offsets only in the second read.
    """
    matrix = x.reshape(-1, x.shape[-1])
    N = x.shape[-1]
    gathered = _read(
        matrix, N if rows == "N" else matrix.stride(0), 1 if columns == "1" else matrix.stride(1)
    )
    true = matrix.float()
    return (
        _normalise(true if only_again else gathered, gathered, w, b, eps)
        .reshape(x.shape)
        .to(x.dtype)
    )


def _forward_written_with_strides_of_x(x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
    """Write the rows of y at the row stride of x, although y is a new matrix without gaps."""
    matrix = x.reshape(-1, x.shape[-1])
    M, N = matrix.shape
    y = torch.zeros(M * N)
    values = _normalise(matrix.float(), matrix.float(), w, b, eps)
    for row in range(M):
        start = row * matrix.stride(0)
        y[start : start + N] = values[row, : max(M * N - start, 0)]
    return y.reshape(x.shape).to(x.dtype)


def _forward_in_other_memory(x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
    """Return y with its columns one after the other in memory."""
    return _turn(forward(x, w, b, eps))


def _turn(matrix: Tensor) -> Tensor:
    """Return the same numbers in memory whose outermost dimension is the last one."""
    return matrix.movedim(-1, 0).contiguous().movedim(0, -1)


# ---- backward


def add_rows(terms: Tensor) -> Tensor:
    return terms.sum(0)


def _add_rows_in_partials(terms: Tensor, rows: int) -> Tensor:
    return _add([piece.sum(0) for piece in terms.split(rows)])


def lose_last_partial(terms: Tensor, rows: int) -> Tensor:
    """Add the rows in partial sums of ``rows`` rows. The buffer has room for M // rows of them, so
    an incomplete last one is lost."""
    return terms[: len(terms) // rows * rows].sum(0)


def _lose_last_of_a_large_batch(terms: Tensor) -> Tensor:
    large = len(terms) >= 1024 and terms.shape[1] < 64
    return lose_last_partial(terms, 8 if large else 1)


def _lose_last_of_shares(terms: Tensor, programs: int) -> Tensor:
    """Add the rows of a fixed number of programs, each with M // programs rows. The remaining rows
    are lost."""
    return terms[: len(terms) // programs * programs].sum(0)


_calls = count()


def _add_rows_in_any_order(terms: Tensor) -> Tensor:
    """Add one row after the other in an order that changes with each call, like atomic
    additions."""
    order = torch.randperm(len(terms), generator=torch.Generator().manual_seed(next(_calls)))
    return terms[order].sum(0)


def backward(
    dy: Tensor, x: Tensor, w: Tensor, eps: float, *, statistics: Statistics = two_pass,
    add: Rows = add_rows, mean_dtype: Any = None,
    rstd_dtype: Any = None, nudge: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute dx, dw and db.

    Args:
        mean_dtype, rstd_dtype: the dtype in which forward saves them; "x" means that of x, None
            means fp32.
        nudge: as in :func:`forward`.
    """
    N = x.shape[-1]
    rows, dys = x.reshape(-1, N).float(), dy.reshape(-1, N).float()
    mean, var = statistics(rows)
    rstd = (var + eps).rsqrt() * (1 + nudge)
    mean, rstd = _save(mean, mean_dtype, x), _save(rstd, rstd_dtype, x)
    dx, of_w, of_b = _compute_terms(dys, rows, w.float(), mean, rstd)
    return dx.reshape(x.shape).to(x.dtype), add(of_w).to(w.dtype), add(of_b).to(w.dtype)


def _save(values: Tensor, dtype: Any, x: Tensor) -> Tensor:
    return values if dtype is None else values.to(x.dtype if dtype == "x" else dtype).float()


def _compute_terms(
    dy: Tensor, x: Tensor, w: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return dx, and the terms whose sums over the rows are dw and db."""
    xhat, wdy = (x - mean) * rstd, dy * w
    c1, c2 = (xhat * wdy).mean(1, keepdim=True), wdy.mean(1, keepdim=True)
    return (wdy - xhat * c1 - c2) * rstd, dy * xhat, dy


def backward_of_first_rows(
    dy: Tensor, x: Tensor, w: Tensor, eps: float, *, leading: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Take the product of the first ``leading`` dimensions as M, and leave the other rows out."""
    N = x.shape[-1]
    M = x.shape[:-1][:leading].numel()
    rows, dys = x.reshape(-1, N)[:M], dy.reshape(-1, N)[:M]
    dx = torch.zeros(x.shape, dtype=x.dtype).reshape(-1, N)
    dx[:M], dw, db = backward(dys, rows, w, eps)
    return dx.reshape(x.shape), dw, db


def backward_of_long_rows(
    dy: Tensor, x: Tensor, w: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Take x.shape[0] as M, and all numbers of one index of that dimension as one long row.

    dw and db are the first N of the sums over these rows.
    """
    N, M = x.shape[-1], x.shape[0] if x.ndim > 1 else 1
    rows, dys = x.reshape(M, -1), dy.reshape(M, -1)
    beyond = torch.nn.functional.pad(w, (0, rows.shape[1] - N))
    dx, dw, db = backward(dys, rows, beyond, eps)
    return dx.reshape(x.shape), dw[:N].contiguous(), db[:N].contiguous()


def _backward_summed_over_first(
    dy: Tensor, x: Tensor, w: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum dw and db over the first dimension only. If x has three dimensions, they have one
    dimension too many."""
    dx, _, _ = backward(dy, x, w, eps)
    mean, var = two_pass(x.reshape(-1, x.shape[-1]).float())
    xhat = ((x.reshape(-1, x.shape[-1]).float() - mean) * (var + eps).rsqrt()).reshape(x.shape)
    terms = dy.float() * xhat
    if x.ndim == 1:
        return dx, terms.to(w.dtype), dy.to(w.dtype)
    return dx, terms.sum(0).to(w.dtype), dy.float().sum(0).to(w.dtype)


def _backward_in_grid_of_floor(
    dy: Tensor, x: Tensor, w: Tensor, eps: float, *, rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Launch M // rows programs. The remaining rows get no dx, and are missing in dw and db."""
    N = x.shape[-1]
    covered = x.reshape(-1, N).shape[0] // rows * rows
    dx, dw, db = torch.zeros_like(x.reshape(-1, N)), torch.zeros_like(w), torch.zeros_like(w)
    if covered:
        dx[:covered], dw, db = backward(
            dy.reshape(-1, N)[:covered], x.reshape(-1, N)[:covered], w, eps
        )
    return dx.reshape(x.shape), dw, db


def backward_over_dy(dy: Tensor, x: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Write dx into the memory of dy. A dy that is not contiguous is copied first, and the copy is
    overwritten."""
    dx, dw, db = backward(dy, x, w, eps)
    room = dy.contiguous()
    return room.copy_(dx) if room.dtype == dx.dtype else dx, dw, db


def _backward_with_wdy_in_place(
    dy: Tensor, x: Tensor, w: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Store w * dy in the memory of dy."""
    gradients = backward(dy, x, w, eps)
    if dy.is_contiguous():
        dy.copy_(dy * w)  # not mul_, which refuses a w of a wider dtype
    return gradients


def _backward_with_xhat_in_place(
    dy: Tensor, x: Tensor, w: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Store xhat in the memory of x."""
    gradients = backward(dy, x, w, eps)
    if x.is_contiguous():
        mean, var = two_pass(x.reshape(-1, x.shape[-1]).float())
        x.copy_(
            ((x.reshape(-1, x.shape[-1]).float() - mean) * (var + eps).rsqrt()).reshape(x.shape)
        )
    return gradients


def _backward_in_other_memory(
    dy: Tensor, x: Tensor, w: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dx, dw, db = backward(dy, x, w, eps)
    return _turn(dx), dw, db


_NUDGE = 2.0**-21  # relative error of rstd from a GPU's approximate reciprocal root
# Relative loss of a sum of which every addition truncates. With it a mean of 400 standard
# deviations makes the variance negative.
_LOST = 2.0**-17
# functions of (x, w, b, eps) that return y
FORWARD: dict[str, Callable[..., Tensor]] = {
    "right": forward,
    "right in fp64": partial(forward, statistics=_in_double),
    "right by merging": partial(forward, statistics=partial(_merge_blocks, block=16)),
    "right in blocks": partial(forward, statistics=partial(_two_pass_in_blocks, block=32)),
    "right shifted": partial(forward, statistics=_shift_and_sum),
    "right approximate": partial(forward, nudge=_NUDGE),
    "right in other memory": _forward_in_other_memory,
    "padded row": partial(forward, statistics=padded),
    "padded blocks of 128": partial(forward, statistics=partial(padded, block=128)),
    "padded blocks of 4": partial(forward, statistics=partial(padded, block=4)),
    "divided by lanes": partial(forward, statistics=partial(padded, divide_by_lanes=True)),
    "one pass": partial(forward, statistics=one_pass),
    "one pass, clamped": partial(forward, statistics=partial(one_pass, clamp=True)),
    "one pass in blocks": partial(forward, statistics=partial(one_pass, block=64)),
    "one pass, rounded down": partial(forward, statistics=partial(one_pass, lost=_LOST)),
    "rows N apart": partial(forward_by_offsets, rows="N"),
    "columns 1 apart": partial(forward_by_offsets, columns="1"),
    "read from the first on": partial(forward_by_offsets, rows="N", columns="1"),
    "columns 1 apart again": partial(forward_by_offsets, columns="1", only_again=True),
    "y with strides of x": _forward_written_with_strides_of_x,
}
# functions of (dy, x, w, eps) that return dx, dw and db
BACKWARD: dict[str, Callable[..., tuple[Tensor, Tensor, Tensor]]] = {
    "right": backward,
    "right in fp64": partial(backward, statistics=_in_double),
    "right by atomics": partial(backward, add=_add_rows_in_any_order),
    "right in partials": partial(backward, add=partial(_add_rows_in_partials, rows=32)),
    "right approximate": partial(backward, nudge=-_NUDGE),
    "right in other memory": _backward_in_other_memory,
    "first dimension": backward_of_first_rows,
    "first dimension, long rows": backward_of_long_rows,
    "first two dimensions": partial(backward_of_first_rows, leading=2),
    "summed over first": _backward_summed_over_first,
    "dx over dy": backward_over_dy,
    "wdy over dy": _backward_with_wdy_in_place,
    "xhat over x": _backward_with_xhat_in_place,
    "partials of 4, floor": partial(backward, add=partial(lose_last_partial, rows=4)),
    "partials of 16, floor": partial(backward, add=partial(lose_last_partial, rows=16)),
    "partials of a large batch, floor": partial(backward, add=_lose_last_of_a_large_batch),
    "shares of 8 programs, floor": partial(backward, add=partial(_lose_last_of_shares, programs=8)),
    "grid of 2 rows, floor": partial(_backward_in_grid_of_floor, rows=2),
    "saved as x": partial(backward, mean_dtype="x", rstd_dtype="x"),
    "mean saved as x": partial(backward, mean_dtype="x"),
    "mean saved in bf16": partial(backward, mean_dtype=torch.bfloat16),
}
