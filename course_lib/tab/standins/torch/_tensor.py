"""torch.Tensor on memory of NumPy: views, arithmetic in PyTorch's dtypes, sums over dimensions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, partialmethod
from typing import Any, NoReturn

import numpy as np

from . import _dtypes
from ._dtypes import bool_, dtype, float32, int64, narrow, promote_operands, uint8, widen
from ._layout import arrange, check_broadcast, find_view, pack, resolve_shape, unpack_sizes
from ._printing import tensor_text
from ._refusal import refuse

contiguous_format = "torch.contiguous_format"
_ALIGNED = 64  # bytes; PyTorch's memory begins at a multiple of this


class device:
    """torch.device; a tab has the CPU alone."""

    type, index = "cpu", None

    def __init__(self, name: Any = "cpu") -> None:
        if str(name) != "cpu":
            refuse(f"the device {str(name)!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash(device)

    def __str__(self) -> str:
        return "cpu"

    def __repr__(self) -> str:
        return "device(type='cpu')"


class Size(tuple):
    """torch.Size."""

    def numel(self) -> int:
        return math.prod(self)

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else item

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class UntypedStorage:
    """The bytes that tensors share."""

    def __init__(self, memory: np.ndarray | int) -> None:
        """Share the bytes of ``memory``, or make new memory of so many bytes."""
        if isinstance(memory, int):
            room = np.empty(memory + _ALIGNED, np.uint8)
            start = -_address(room) % _ALIGNED
            memory = room[start : start + memory]
        self.memory = memory

    def data_ptr(self) -> int:
        return _address(self.memory) if self.memory.size else 0

    def nbytes(self) -> int:
        return self.memory.size

    def cpu(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self.memory.size).copy_(self)

    def copy_(self, source: UntypedStorage) -> UntypedStorage:
        self.memory[:] = source.memory
        return self

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"torch.UntypedStorage.{name}")


class Tensor:
    """torch.Tensor without gradients."""

    __slots__ = ("__weakref__", "_offset", "_storage", "_stride", "dtype", "shape")
    __array_priority__ = 1000
    device = device()
    requires_grad = False
    _storage: UntypedStorage
    _offset: int
    _stride: tuple[int, ...]
    dtype: dtype
    shape: Size

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        refuse("torch.Tensor()")

    def __getattr__(self, name: str) -> Any:
        refuse(f"torch.Tensor.{name}")

    # ---- memory

    @property
    def _bits(self) -> np.ndarray:
        """The elements as stored in memory, which the array shares."""
        size, memory = self.dtype.itemsize, self._storage.memory
        if not self.numel():
            return np.empty(self.shape, self.dtype.stored)
        strides = [stride * size for stride in self._stride]
        return np.ndarray(self.shape, self.dtype.stored, memory, self._offset * size, strides)

    @property
    def _values(self) -> np.ndarray:
        """The elements in the dtype in which operations compute."""
        return widen(self._bits, self.dtype)

    def _view(self, shape: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
        return _make(self._storage, self.dtype, shape, stride, offset)

    def untyped_storage(self) -> UntypedStorage:
        return self._storage

    def storage_offset(self) -> int:
        return self._offset

    def data_ptr(self) -> int:
        return self._storage.data_ptr() + self._offset * self.dtype.itemsize if self.numel() else 0

    def element_size(self) -> int:
        return self.dtype.itemsize

    def set_(
        self, source: UntypedStorage, offset: int = 0, size: Any = None, stride: Any = None
    ) -> Tensor:
        size = (source.nbytes() // self.dtype.itemsize,) if size is None else size
        stride = pack(size) if stride is None else stride
        self._storage = source
        self._offset = offset
        self.shape = Size(size)
        self._stride = tuple(stride)
        return self

    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Tensor:
        offset = self._offset if storage_offset is None else storage_offset
        item = self.dtype.itemsize
        reach = offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if math.prod(size) and reach * item > self._storage.nbytes():
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset},"
                f" and itemsize {item} requiring a storage size of {reach * item} are out of bounds"
                f" for storage of size {self._storage.nbytes()}"
            )
        return self._view(size, stride, offset)

    def copy_(self, source: Tensor) -> Tensor:
        check_broadcast(self.shape, source.shape)
        if source.dtype is self.dtype:
            self._bits[...] = source.expand(self.shape)._bits
        else:
            self._bits[...] = narrow(source.expand(self.shape)._values, self.dtype)
        return self

    def fill_(self, value: float) -> Tensor:
        self._bits[...] = narrow(np.array(value), self.dtype)
        return self

    # ---- shape

    ndim = property(lambda self: len(self.shape))

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._stride if dim is None else self._stride[dim]

    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_cuda(self) -> bool:
        return False

    def is_contiguous(self) -> bool:
        pairs = zip(self.shape, self._stride, pack(self.shape), strict=True)
        return not self.numel() or all(
            stride == packed for size, stride, packed in pairs if size != 1
        )

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else make_new(self.shape, self.dtype).copy_(self)

    def clone(self) -> Tensor:
        return make_new(self.shape, self.dtype, [self]).copy_(self)

    def detach(self) -> Tensor:
        return self._view(self.shape, self._stride, self._offset)

    def view(self, *shape: Any) -> Tensor:
        shape = resolve_shape(shape, self.numel())
        stride = find_view(self.shape, self._stride, shape)
        if stride is None:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one"
                " dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
        return self._view(shape, stride, self._offset)

    def reshape(self, *shape: Any) -> Tensor:
        shape = resolve_shape(shape, self.numel())
        can_be_seen = find_view(self.shape, self._stride, shape) is not None
        return (self if can_be_seen else make_new(self.shape, self.dtype).copy_(self)).view(shape)

    def flatten(self) -> Tensor:
        return self if self.ndim == 1 else self.reshape(-1)

    def permute(self, *dims: Any) -> Tensor:
        order = [self._axis(dim) for dim in unpack_sizes(dims)]
        return self._view(
            [self.shape[k] for k in order], [self._stride[k] for k in order], self._offset
        )

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        order = list(range(self.ndim))
        axis, other_axis = self._axis(dim0), self._axis(dim1)
        if order:
            order[axis], order[other_axis] = other_axis, axis
        return self.permute(order)

    def t(self) -> Tensor:
        if self.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D"
            )
        return self.permute(*reversed(range(self.ndim)))

    def movedim(self, source: int, destination: int) -> Tensor:
        order = list(range(self.ndim))
        source = self._axis(source)
        destination = self._axis(destination)
        if order:
            order.insert(destination, order.pop(source))
        return self.permute(order)

    def expand(self, *sizes: Any) -> Tensor:
        sizes = tuple(unpack_sizes(sizes))
        new = len(sizes) - self.ndim
        if new < 0:
            raise RuntimeError(
                f"expand(torch.{self.dtype.word}Tensor{{{list(self.shape)}}}, size={list(sizes)}):"
                f" the number of sizes provided ({len(sizes)}) must be greater or equal to the"
                f" number of dimensions in the tensor ({self.ndim})"
            )
        shape, stride = list(sizes), [0] * len(sizes)
        for k, (size, step) in enumerate(zip(self.shape, self._stride, strict=True), start=new):
            if sizes[k] in (-1, size):
                shape[k], stride[k] = size, step
            elif size != 1:
                raise RuntimeError(
                    f"The expanded size of the tensor ({sizes[k]}) must match the existing size"
                    f" ({size}) at non-singleton dimension {k}.  Target sizes: {list(sizes)}. "
                    f" Tensor sizes: {list(self.shape)}"
                )
        for k in range(new - 1, -1, -1):
            stride[k] = shape[k + 1] * stride[k + 1] if k + 1 < len(shape) and shape[k] == 1 else 0
        return self._view(shape, stride, self._offset)

    def split(self, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
        before = (slice(None),) * self._axis(dim)
        return tuple(
            self[(*before, slice(at, at + split_size))]
            for at in range(0, max(self.shape[dim], 1), split_size)
        )

    def _axis(self, dim: int) -> int:
        rank = max(self.ndim, 1)
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got"
                f" {dim})"
            )
        return dim % rank

    # ---- elements

    def __getitem__(self, index: Any) -> Tensor:
        index = index if isinstance(index, tuple) else (index,)
        if any(_gathers(part) for part in index):
            picked = self._bits[tuple(_as_numpy_index(part) for part in index)]
            return make_new(picked.shape, self.dtype)._write(picked)
        if (used := sum(part is not None and part is not ... for part in index)) > self.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
        if not any(part is ... for part in index):
            index = (*index, ...)
        shape, stride, offset, at = [], [], self._offset, 0
        for part in index:
            if part is None:
                step = self.shape[at] * self._stride[at] if at < self.ndim else 1
                shape.append(1)
                stride.append(step)
            elif part is ...:
                skipped = slice(at, at + self.ndim - used)
                shape += self.shape[skipped]
                stride += self._stride[skipped]
                at = skipped.stop
            elif isinstance(part, slice):
                start, stop, step = part.indices(self.shape[at])
                if step < 0:
                    raise ValueError("step must be greater than zero")
                shape.append(len(range(start, stop, step)))
                stride.append(self._stride[at] * step)
                offset, at = offset + start * self._stride[at], at + 1
            else:
                place = operator.index(part)
                if not -self.shape[at] <= place < self.shape[at]:
                    raise IndexError(
                        f"index {place} is out of bounds for dimension {at} with size"
                        f" {self.shape[at]}"
                    )
                offset, at = offset + place % self.shape[at] * self._stride[at], at + 1
        return self._view(shape, stride, offset)

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        if any(_gathers(part) for part in parts):
            values = value._values if isinstance(value, Tensor) else np.array(value)
            self._bits[tuple(_as_numpy_index(part) for part in parts)] = narrow(values, self.dtype)
        elif isinstance(value, Tensor):
            self[index].copy_(value)
        else:
            self[index].fill_(value)

    def _write(self, bits: np.ndarray) -> Tensor:
        self._bits[...] = bits
        return self

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._values.item()

    def tolist(self) -> Any:
        return self._values.tolist()

    def numpy(self) -> np.ndarray:
        if self.dtype is _dtypes.bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._bits

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        before = (slice(None),) * self._axis(dim)
        return tuple(self[(*before, k)] for k in range(self.shape[dim]))

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.numel() > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        if not self.numel():
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind == "f" or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return tensor_text(self._values, self.dtype, default=self.dtype in (float32, int64, bool_))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim else object.__format__(self, spec)

    # ---- dtypes

    def to(self, *targets: Any, device: Any = None, dtype: Any = None) -> Tensor:
        for part in targets:
            if isinstance(part, Tensor):
                dtype = part.dtype
            elif isinstance(part, _dtypes.dtype):
                dtype = part
            else:
                check_device(part)
        check_device(device)
        return (
            self if dtype in (None, self.dtype) else make_new(self.shape, dtype, [self]).copy_(self)
        )

    def cpu(self) -> Tensor:
        return self

    def new_empty(self, *size: Any, dtype: Any = None, device: Any = None) -> Tensor:
        check_device(device)
        return make_new(unpack_sizes(size), dtype or self.dtype)

    # ---- sums over dimensions

    def sum(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        if self.dtype.kind == "f":
            return self._reduce(np.sum, dim, keepdim, self.dtype)
        return self._reduce(partial(np.sum, dtype=np.int64), dim, keepdim, int64)

    def mean(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        if self.dtype.kind != "f":
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point"
                f" or complex dtype. Got: {self.dtype.word}"
            )
        return self._reduce(np.mean, dim, keepdim, self.dtype)

    def var(self, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
        return self._reduce(
            partial(np.var, ddof=correction, dtype=np.float64), dim, keepdim, self.dtype
        )

    def std(self, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
        return self._reduce(
            partial(np.std, ddof=correction, dtype=np.float64), dim, keepdim, self.dtype
        )

    def amax(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.max, dim, keepdim, self.dtype)

    def max(self) -> Tensor:
        return self._reduce(np.max, None, False, self.dtype)

    def min(self) -> Tensor:
        return self._reduce(np.min, None, False, self.dtype)

    def all(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.all, dim, keepdim, self.dtype if self.dtype is uint8 else bool_)

    def any(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.any, dim, keepdim, self.dtype if self.dtype is uint8 else bool_)

    def _reduce(self, function: Callable, dim: Any, keepdim: bool, kind: dtype) -> Tensor:
        dims = () if dim is None else (dim,) if isinstance(dim, int) else dim
        axes = tuple(self._axis(k) for k in dims) if self.ndim else ()
        with np.errstate(all="ignore"):
            return from_values(
                np.asarray(function(self._values, axis=axes or None, keepdims=keepdim)), kind
            )

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        kind = promote_operands([self, *(bound for bound in (min, max) if bound is not None)])
        wide = self.to(kind)
        with np.errstate(all="ignore"):
            return from_values(np.clip(wide._values, min, max), kind, [wide])


# ---- elementwise operations: name -> the function that computes it, and the kind of its result


def _take_remainder(values: Any, divisor: Any) -> np.ndarray:
    remainder = np.fmod(values, divisor)  # np.remainder loses the sign of -0.0, which PyTorch keeps
    return np.where(
        (remainder != 0) & ((remainder < 0) != (np.asarray(divisor) < 0)),
        remainder + divisor,
        remainder,
    )


_UNARY: dict[str, tuple[Callable, str]] = {
    "abs": (np.abs, "same"),
    "neg": (np.negative, "same"),
    "square": (np.square, "same"),
    "sqrt": (np.sqrt, "float"),
    "rsqrt": (lambda values: 1 / np.sqrt(values), "float"),
    "reciprocal": (np.reciprocal, "float"),
    "isnan": (np.isnan, "bool"),
    "isfinite": (np.isfinite, "bool"),
}
_BINARY: dict[str, tuple[Callable, str]] = {
    "add": (np.add, "same"),
    "sub": (np.subtract, "same"),
    "mul": (np.multiply, "same"),
    "div": (np.true_divide, "float"),
    "pow": (np.power, "same"),
    "remainder": (_take_remainder, "same"),
    "lt": (np.less, "bool"),
    "le": (np.less_equal, "bool"),
    "gt": (np.greater, "bool"),
    "ge": (np.greater_equal, "bool"),
    "eq": (np.equal, "bool"),
    "ne": (np.not_equal, "bool"),
}
_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "remainder",
    "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "eq": "eq", "ne": "ne",
}  # fmt: skip
_CASTS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}


def _make_operation(function: Callable, result: str) -> Callable[..., Any]:
    def operation(*operands: Any, out: Tensor | None = None) -> Tensor:
        kind = promote_operands(operands)
        kind = float32 if result == "float" and kind.kind != "f" else kind
        operands = tuple(part.to(kind) if isinstance(part, Tensor) else part for part in operands)
        tensors = [part for part in operands if isinstance(part, Tensor)]
        check_broadcast(tensors[0].shape, tensors[-1].shape)
        with np.errstate(all="ignore"):
            first_operand = compute_operand(operands[0], kind, rounded=True)
            values = function(
                first_operand,
                *(compute_operand(part, kind, rounded=result == "bool") for part in operands[1:]),
            )
        if out is not None:
            return out._write(narrow(values, out.dtype))
        return from_values(values, bool_ if result == "bool" else kind, operands)

    return operation


def compute_operand(part: Any, kind: dtype, *, rounded: bool = False) -> np.ndarray:
    """Return a number, or the elements of a tensor, in the dtype in which operations of ``kind``
    compute.

    ``rounded``: a number is rounded to ``kind`` first. PyTorch does so in comparisons, and with the
    first operand.
    """
    if isinstance(part, Tensor):
        return part.to(kind)._values
    number = np.asarray(part)
    return widen(narrow(number, kind), kind) if rounded else number.astype(kind.computed)


def _divide_number(tensor: Tensor, number: Any) -> Tensor:
    """Divide a number by a tensor as PyTorch does: it multiplies the number by the reciprocals."""
    return OPERATIONS["reciprocal"](tensor) * number


def _swap(operation: Callable) -> Callable:
    return lambda self, other: operation(other, self)


def _only_known(operation: Callable) -> Callable:
    """Return the operation as an operator that returns NotImplemented for anything but a tensor or
    a number."""

    def method(self: Tensor, other: Any) -> Any:
        return (
            operation(self, other)
            if isinstance(other, (Tensor, bool, int, float, np.generic))
            else NotImplemented
        )

    return method


def _in_place(operation: Callable) -> Callable:
    def method(self: Tensor, other: Any) -> Tensor:
        result = operation(self, other)
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape"
                f" {list(result.shape)}"
            )
        if "bif".index(result.dtype.kind) > "bif".index(self.dtype.kind):
            raise RuntimeError(
                f"result type {result.dtype.word} can't be cast to the desired output type"
                f" {self.dtype.word}"
            )
        return self.copy_(result)

    return method


OPERATIONS = {name: _make_operation(*arguments) for name, arguments in (_UNARY | _BINARY).items()}


def _add_methods() -> None:
    for name, operation in OPERATIONS.items():
        setattr(Tensor, name, operation)
    for name in ("neg", "abs"):
        setattr(Tensor, f"__{name}__", OPERATIONS[name])
    for sign, name in _OPERATORS.items():
        operation = OPERATIONS[name]
        setattr(Tensor, f"__{sign}__", _only_known(operation))
        if _BINARY[name][1] != "bool":
            swapped = {"add": operation, "mul": operation, "div": _divide_number}.get(
                name
            ) or _swap(operation)
            setattr(Tensor, f"__r{sign}__", _only_known(swapped))
            setattr(Tensor, f"__i{sign}__", _in_place(operation))
            setattr(Tensor, f"{name}_", _in_place(operation))
    for name, kind in _CASTS.items():
        setattr(Tensor, name, partialmethod(Tensor.to, _dtypes.DTYPES[kind]))


_add_methods()


# ---- making tensors


def _make(
    storage: UntypedStorage,
    kind: dtype,
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int = 0,
) -> Tensor:
    tensor = object.__new__(Tensor)
    tensor.dtype = kind
    return tensor.set_(storage, offset, shape, stride)


def make_new(shape: Sequence[int], kind: dtype, like: Sequence[Any] = ()) -> Tensor:
    """Return a tensor of new memory. The order of its dimensions in memory is that of ``like``;
    without ``like`` the last is innermost."""
    shape = tuple(operator.index(size) for size in shape)
    layouts = [
        (tuple(part.shape), part.stride()) if isinstance(part, Tensor) else ((), ())
        for part in like
    ]
    return _make(
        UntypedStorage(math.prod(shape) * kind.itemsize), kind, shape, arrange(shape, layouts)
    )


def from_values(values: np.ndarray, kind: dtype, operands: Sequence[Any] = ()) -> Tensor:
    """Return the result of an operation on tensors and numbers, rounded to ``kind``."""
    values = np.asarray(values)
    if all(
        isinstance(part, Tensor) and part.shape == values.shape and part.is_contiguous()
        for part in operands
    ):
        operands = ()
    return make_new(values.shape, kind, operands)._write(narrow(values, kind))


def share(array: np.ndarray) -> Tensor:
    """Return a tensor on the memory of an array."""
    kind = _dtypes.of_numpy(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative"
            " strides are not currently supported. (You can probably work around this by making a"
            " copy of your array  with array.copy().) "
        )
    reach = 1 + sum(
        (n - 1) * step // kind.itemsize for n, step in zip(array.shape, array.strides, strict=True)
    )
    flat = np.lib.stride_tricks.as_strided(array, (reach if array.size else 0,), (kind.itemsize,))
    return _make(
        UntypedStorage(flat.view(np.uint8)),
        kind,
        array.shape,
        [step // kind.itemsize for step in array.strides],
    )


def check_device(requested: Any) -> None:
    """Require the CPU as the ``requested`` device; None stands for the CPU.

    Raises: NeedsPyTorch for any other device.
    """
    if requested is not None:
        device(requested)


def _gathers(part: Any) -> bool:
    """Return True if an index picks elements one by one, so that the result is a copy."""
    return isinstance(part, (list, np.ndarray, bool)) or (
        isinstance(part, Tensor) and (part.ndim > 0 or part.dtype is bool_)
    )


def _as_numpy_index(part: Any) -> Any:
    return part.numpy() if isinstance(part, Tensor) else part
