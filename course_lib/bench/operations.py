"""The operations that are timed: six of them, the bytes that each has to move, their values in
float64, and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.bench import timing

EPS = 1e-5
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
# Allowed error relative to max(1, size of the value, or of the terms of a sum): two or three
# roundings of the dtype. A forgotten mask causes a far larger error.
LIMITS = {torch.float16: 8e-3, torch.bfloat16: 6e-2, torch.float32: 2e-4}
# elements that are checked at a time, to limit the memory for float64 values and intermediates
_CHUNK = 2**22


class WrongValues(Exception):
    """A provider's values are wrong, so that its time would mean nothing."""


@dataclass(frozen=True)
class NormOperation:
    """An operation. ``matrices``: number of M x N matrices that it has to read or write;
    ``outputs``: in the order in which a call returns them."""

    name: str
    matrices: int
    outputs: tuple[str, ...]
    centred: bool
    add: bool = False
    backward: bool = False


OPERATIONS = {
    op.name: op
    for op in (
        NormOperation("layer_norm", 2, ("y",), centred=True),
        NormOperation("rms_norm", 2, ("y",), centred=False),
        NormOperation("add_rms_norm", 4, ("total", "y"), centred=False, add=True),
        NormOperation("add_layer_norm", 4, ("total", "y"), centred=True, add=True),
        NormOperation("layer_norm_backward", 3, ("dx", "dw", "db"), centred=True, backward=True),
        NormOperation("rms_norm_backward", 3, ("dx", "dw"), centred=False, backward=True),
    )
}


@dataclass(frozen=True)
class Values:
    """One input set: x, residual and dy of shape (M, N), w and b of shape (N,), all of one
    dtype."""

    x: Tensor
    residual: Tensor
    dy: Tensor
    w: Tensor
    b: Tensor


def make(
    M: int, N: int, dtype: torch.dtype, device: str, count: int, ops: Sequence[NormOperation]
) -> list[Values]:
    """Make ``count`` input sets that share w and b, the same on every run. A matrix that no
    operation reads is x again."""
    generator = torch.Generator(device).manual_seed(M + N)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device, dtype=dtype)

    w, b = torch.rand(N, generator=generator, device=device, dtype=dtype) + 0.5, normal(N)
    sets = []
    for _ in range(count):
        x = normal(M, N) + 1
        residual = normal(M, N) if any(op.add for op in ops) else x
        sets.append(
            Values(x, residual, normal(M, N) if any(op.backward for op in ops) else x, w, b)
        )
    return sets


def check(op: NormOperation, results: Sequence[Tensor], values: Values) -> None:
    """Compare every element with the operation's result in float64.

    Args:
        results: the results of a call, op.outputs first.

    Raises: WrongValues that says which output is wrong and by how much.
    """
    named = dict(zip(op.outputs, results, strict=False))
    for name in op.outputs:
        if name not in named:
            raise WrongValues(f"{name} is missing")
    compare(op, named, values)


def compare(op: NormOperation, named: Mapping[str, Tensor], values: Values) -> None:
    """Compare every element of some of an operation's outputs, by name, with its result in float64.

    Raises: WrongValues that says which output is wrong and by how much.
    """
    x = values.x
    shapes = {"dw": values.w.shape, "db": values.b.shape}
    for name, tensor in named.items():
        shape = shapes.get(name, x.shape)
        if tensor.shape != shape:
            raise WrongValues(f"{name} is of shape {tuple(tensor.shape)}, not {tuple(shape)}")
        if name not in shapes and tensor.dtype != x.dtype:
            raise WrongValues(f"{name} is of {tensor.dtype}, not {x.dtype}")
    sums = {
        name: torch.zeros(2, x.shape[1], dtype=torch.float64, device=x.device)
        for name in named
        if name in shapes
    }
    for rows in _split_rows(x):
        for name, (exact, scale) in _compute_exactly(op, values, rows).items():
            if name in sums:
                sums[name] += torch.stack((exact.sum(0), (exact * exact).sum(0)))
            elif name in named:
                compare_tensor(name, named[name][rows], exact, scale, x.dtype)
    for name, (exact, squares) in sums.items():
        compare_tensor(name, named[name], exact, squares.sqrt(), x.dtype)


def _compute_exactly(
    op: NormOperation, values: Values, rows: slice
) -> dict[str, tuple[Tensor, Tensor]]:
    """Compute the operation on some rows in float64: each value, and the size that its rounding
    errors are relative to.

    For dw and db the values are the terms of the sums, one line per row. dx is a difference whose
    terms nearly cancel in short rows, and rstd multiplies their rounding errors, so its size is
    that of the terms.
    """
    x, w, b = values.x[rows], values.w.double(), values.b.double()
    # rounded to the dtype, because the next layer reads it so
    total = x + values.residual[rows] if op.add else x
    wide = total.double()
    deviation = wide - wide.mean(1, keepdim=True) if op.centred else wide
    rstd = torch.rsqrt((deviation * deviation).mean(1, keepdim=True) + EPS)
    xhat = deviation * rstd
    if not op.backward:
        y = xhat * w + b if op.centred else xhat * w
        exact = {"total": wide, "y": y} if op.add else {"y": y}
        return {name: (value, value.abs()) for name, value in exact.items()}
    dy = values.dy[rows].double()
    wdy = w * dy
    projection = xhat * (xhat * wdy).mean(1, keepdim=True)
    dx, size = wdy - projection, wdy.abs() + projection.abs()
    if op.centred:
        wdy_mean = wdy.mean(1, keepdim=True)
        dx, size = dx - wdy_mean, size + wdy_mean.abs()
    return {"dx": (dx * rstd, size * rstd), "dw": (dy * xhat, dy * xhat), "db": (dy, dy)}


def compare_tensor(
    name: str, actual: Tensor, exact: Tensor, scale: Tensor, dtype: torch.dtype
) -> None:
    """Compare a tensor with float64 values; rounding of ``dtype`` is allowed, relative to
    ``scale``, or to 1 where that is less.

    Raises: WrongValues that says how wrong the tensor is.
    """
    off = (actual.double() - exact).abs() / scale.clamp(min=1.0)
    worst = torch.nan_to_num(off, nan=torch.inf).max().item()
    if worst > LIMITS[dtype]:
        raise WrongValues(
            f"{name} is wrong by {worst:.3g} of its size; rounding explains {LIMITS[dtype]:g}"
        )


def _split_rows(x: Tensor) -> Iterator[slice]:
    step = max(1, _CHUNK // x.shape[1])
    return (slice(first_row, first_row + step) for first_row in range(0, x.shape[0], step))


def floor_us(op: NormOperation, inputs: Sequence[Values]) -> float:
    """Return the time of the fastest of several elementwise passes over the bytes that ``op``
    moves.

    An op with a residual moves four matrices, so its floor is the time of two copies. The passes
    use flat views, because a clone of a matrix is slower at some row lengths, such as 5120 or 15872
    columns.
    """
    flat = [(v.x.view(-1), v.dy.view(-1)) for v in inputs]
    target = torch.empty_like(flat[0][0])
    copy = min(
        _device_us(f, flat)
        for f in (
            lambda x, _: x.clone(),
            lambda x, _: target.copy_(x),
            lambda x, _: torch.add(x, 1.0),
        )
    )
    if not op.backward:
        return copy * op.matrices / 2
    # reads two matrices, writes one
    passes = (torch.add, lambda x, dy: torch.add(x, dy, out=target), torch.mul)
    return min(copy * op.matrices / 2, *(_device_us(f, flat) for f in passes))


def _device_us(
    f: Callable[[Tensor, Tensor], Tensor], flat: Sequence[tuple[Tensor, Tensor]]
) -> float:
    return timing.device_us([lambda pair=pair: f(*pair) for pair in flat])
