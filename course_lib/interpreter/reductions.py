"""Reduce in the order, and with the rounding, of a tree over lanes.

The stock interpreter calls a custom combine function once per element, in a slow Python loop. It
also adds fp16 in one exact sum, so that a kernel whose accumulator is too narrow gives right
results. Here lane i is combined with lane i + n/2, then n is halved, as the shuffles of a warp do.
The combine function is called log2(n) times, with whole arrays, and a sum of fp16 or bf16 is
rounded at every step.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from course_lib.interpreter.numerics import bf16_bits, bf16_values


def reduce_as_a_tree() -> None:
    """Replace the interpreter's custom reductions and scans, and its sums of half precision, by
    trees.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    import triton.language as tl
    from triton.runtime.interpreter import ReduceOps, ScanOps, TensorHandle, _get_np_dtype

    stock_sum, stock_min_max, stock_cumsum = ReduceOps.sum, ReduceOps.min_max, ScanOps.cumsum
    getattr(ReduceOps, "generic_reduce")  # noqa: B009 - raises AttributeError if this Triton has no such function
    getattr(ScanOps, "generic_scan")  # noqa: B009

    def as_tensor(data: np.ndarray, scalar):
        kind = tl.block_type(scalar, list(data.shape)) if data.ndim else scalar
        return tl.core.tensor(TensorHandle(np.ascontiguousarray(data), scalar), kind)

    def combine_arrays(
        combine_fn, left: list[np.ndarray], right: list[np.ndarray], scalars: list
    ) -> list[np.ndarray]:
        """Call the combine function with whole arrays. A component that it returns as one value has
        this value in every lane."""
        tensors = [
            as_tensor(data, scalar)
            for side in (left, right)
            for data, scalar in zip(side, scalars, strict=True)
        ]
        # with the compiler's meaning: min() of two blocks is elementwise
        result = combine_fn.rewrite()(*tensors)
        result = result if isinstance(result, tuple) else (result,)
        out = []
        for part, like, scalar in zip(result, left, scalars, strict=True):
            data = part.handle.data if isinstance(part, tl.core.tensor) else np.asarray(part)
            out.append(np.broadcast_to(data, like.shape).astype(_get_np_dtype(scalar), copy=False))
        return out

    def unpack(ops, arguments):
        """Return the arrays with the reduced axis first, their scalar types, and the axis (0 if all
        axes are reduced)."""
        axis = 0 if ops.axis is None else ops.axis
        flat = [a.handle.data.reshape(-1) if ops.axis is None else a.handle.data for a in arguments]
        return (
            [np.moveaxis(data, axis, 0) for data in flat],
            [a.dtype.scalar for a in arguments],
            axis,
        )

    def repack(ops, data: np.ndarray, argument, axis: int):
        if ops.keep_dims:
            data = (
                np.expand_dims(data, axis)
                if ops.axis is not None
                else data.reshape((1,) * len(argument.shape))
            )
        elif ops.axis is None:
            data = data.item()
        return ops.to_tensor(data, argument.dtype)

    def generic_reduce(self, arguments):
        data, scalars, axis = unpack(self, arguments)
        while (lanes := data[0].shape[0]) > 1:
            half = lanes // 2
            data = combine_arrays(
                self.combine_fn, [d[:half] for d in data], [d[half:] for d in data], scalars
            )
        return [
            repack(self, d[0], argument, axis) for d, argument in zip(data, arguments, strict=True)
        ]

    def generic_scan(self, arguments):
        data = [np.moveaxis(a.handle.data, self.axis, 0).copy() for a in arguments]
        scalars = [a.dtype.scalar for a in arguments]
        step = 1
        while step < data[0].shape[0]:
            # Use whole blocks, because the length of a tensor must be a power of two. The first
            # lanes have no lane before them and keep their values.
            before = [np.concatenate([d[:step], d[:-step]]) for d in data]
            combined = combine_arrays(self.combine_fn, before, data, scalars)
            data = [
                np.concatenate([d[:step], m[step:]]) for d, m in zip(data, combined, strict=True)
            ]
            step *= 2
        return [
            self.to_tensor(np.moveaxis(d, 0, self.axis), a.dtype)
            for d, a in zip(data, arguments, strict=True)
        ]

    def sum_(self, argument):
        scalar = argument.dtype.scalar
        if scalar.is_int():  # an integer sum wraps around in its own width
            data = argument.handle.data
            return self.to_tensor(
                np.sum(data, axis=self.axis, keepdims=self.keep_dims, dtype=data.dtype),
                argument.dtype,
            )
        if scalar not in (tl.float16, tl.bfloat16):
            return stock_sum(self, argument)
        (data,), _, axis = unpack(self, [argument])
        data = data.view(ml_dtypes.bfloat16) if scalar == tl.bfloat16 else data
        # on a GPU fp16 overflows to Inf without a warning as well
        with np.errstate(over="ignore", invalid="ignore"):
            while (lanes := data.shape[0]) > 1:
                # The number of lanes is a power of two, as every length in Triton.
                data = data[: lanes // 2] + data[lanes // 2 :]
        result = data[0].view(np.uint16) if scalar == tl.bfloat16 else data[0]
        return repack(self, np.asarray(result), argument, axis)

    def min_max(self, argument, *operations, **named):
        first_argument = argument[0] if isinstance(argument, tuple) else argument
        if first_argument.dtype.scalar != tl.bfloat16:
            return stock_min_max(self, argument, *operations, **named)
        wide = stock_min_max(
            self,
            as_tensor(bf16_values(first_argument.handle.data), tl.float32),
            *operations,
            **named,
        )
        return tuple(map(narrow, wide)) if isinstance(wide, tuple) else narrow(wide)

    def narrow(tensor):
        return (
            as_tensor(bf16_bits(tensor.handle.data), tl.bfloat16)
            if tensor.dtype.scalar == tl.float32
            else tensor
        )

    def cumsum(self, argument):
        if argument.dtype.scalar != tl.bfloat16:
            return stock_cumsum(self, argument)
        wide = as_tensor(bf16_values(argument.handle.data), tl.float32)
        return [narrow(part) for part in stock_cumsum(self, wide)]

    for name, method in {"generic_reduce": generic_reduce, "sum": sum_, "min_max": min_max}.items():
        setattr(ReduceOps, name, method)
    for name, method in {"generic_scan": generic_scan, "cumsum": cumsum}.items():
        setattr(ScanOps, name, method)
