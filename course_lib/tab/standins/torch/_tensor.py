"""torch.Tensor on memory of NumPy: views, arithmetic in PyTorch's dtypes, sums over dimensions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from . import _dtypes
from ._dtypes import bool_, dtype, float32, float64, int64, narrow, of_number, promote, promote_operands, widen
from ._printing import tensor_text
from ._refusal import NeedsPyTorch, refuse

_ALIGNED = 64  # bytes: where PyTorch lets memory begin


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
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class UntypedStorage:
    """The bytes that tensors share."""

    def __init__(self, memory: np.ndarray | int) -> None:
        """``memory``: bytes to be shared, or how many new ones."""
        if isinstance(memory, int):
            room = np.empty(memory + _ALIGNED, np.uint8)
            start = -room.ctypes.data % _ALIGNED
            memory = room[start : start + memory]
        self.memory = memory

    def data_ptr(self) -> int:
        return self.memory.ctypes.data if self.memory.size else 0

    def nbytes(self) -> int:
        return self.memory.size

    def cpu(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        copied = UntypedStorage(self.memory.size)
        return copied.copy_(self)

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
        """The elements as they lie in memory, shared."""
        size, memory = self.dtype.itemsize, self._storage.memory
        strides = [stride * size for stride in self._stride]
        return np.ndarray(self.shape, self.dtype.stored, memory, self._offset * size, strides)

    @property
    def _values(self) -> np.ndarray:
        """The elements in the dtype that is computed in."""
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

    def set_(self, source: UntypedStorage, offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
        size = (source.nbytes() // self.dtype.itemsize,) if size is None else size
        stride = _pack(size) if stride is None else stride
        self._storage, self._offset, self.shape, self._stride = source, offset, Size(size), tuple(stride)
        return self

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        offset, item = self._offset if storage_offset is None else storage_offset, self.dtype.itemsize
        reach = offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if math.prod(size) and reach * item > self._storage.nbytes():
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a storage "
                f"size of {reach * item} are out of bounds for storage of size {self._storage.nbytes()}"
            )
        return self._view(size, stride, offset)

    def copy_(self, source: Tensor) -> Tensor:
        if source.dtype is self.dtype:
            self._bits[...] = source.expand(self.shape)._bits
        else:
            self._bits[...] = narrow(source.expand(self.shape)._values, self.dtype)
        return self

    def fill_(self, value: float) -> Tensor:
        self._bits[...] = narrow(np.array(value), self.dtype)
        return self

    def zero_(self) -> Tensor:
        return self.fill_(0)

    # ---- shape

    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: self.permute(*reversed(range(self.ndim))))

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._stride if dim is None else self._stride[dim]

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        pairs = zip(self.shape, self._stride, _pack(self.shape), strict=True)
        return not self.numel() or all(stride == packed for size, stride, packed in pairs if size != 1)

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else _new(self.shape, self.dtype).copy_(self)

    def clone(self) -> Tensor:
        return _new(self.shape, self.dtype, [self]).copy_(self)

    def detach(self) -> Tensor:
        return self._view(self.shape, self._stride, self._offset)

    def view(self, *shape: Any) -> Tensor:
        shape = _resolve(shape, self.numel())
        stride = _find_view(self.shape, self._stride, shape)
        if stride is None:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                "subspaces). Use .reshape(...) instead."
            )
        return self._view(shape, stride, self._offset)

    def reshape(self, *shape: Any) -> Tensor:
        shape = _resolve(shape, self.numel())
        return (
            self.view(shape) if _find_view(self.shape, self._stride, shape) is not None else self._packed().view(shape)
        )

    def _packed(self) -> Tensor:
        return _new(self.shape, self.dtype).copy_(self)

    def flatten(self) -> Tensor:
        return self if self.ndim == 1 else self.reshape(-1)

    def permute(self, *dims: Any) -> Tensor:
        order = [self._axis(dim) for dim in _unpack(dims)]
        return self._view([self.shape[k] for k in order], [self._stride[k] for k in order], self._offset)

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        order = list(range(self.ndim))
        first, second = self._axis(dim0), self._axis(dim1)
        order[first], order[second] = second, first
        return self.permute(order)

    def t(self) -> Tensor:
        if self.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
        return self.permute(*reversed(range(self.ndim)))

    def movedim(self, source: int, destination: int) -> Tensor:
        order = list(range(self.ndim))
        order.insert(self._axis(destination), order.pop(self._axis(source)))
        return self.permute(order)

    def expand(self, *sizes: Any) -> Tensor:
        sizes = tuple(_unpack(sizes))
        new = len(sizes) - self.ndim
        if new < 0:
            raise RuntimeError(
                f"expand({dtype_word(self)}{{{list(self.shape)}}}, size={list(sizes)}): the number of sizes provided ({len(sizes)}) must be "
                f"greater or equal to the number of dimensions in the tensor ({self.ndim})"
            )
        shape, stride = list(sizes), [0] * len(sizes)
        for k, (size, step) in enumerate(zip(self.shape, self._stride, strict=True), start=new):
            if sizes[k] in (-1, size):
                shape[k], stride[k] = size, step
            elif size != 1:
                raise RuntimeError(
                    f"The expanded size of the tensor ({sizes[k]}) must match the existing size ({size}) at non-singleton dimension {k}.  "
                    f"Target sizes: {list(sizes)}.  Tensor sizes: {list(self.shape)}"
                )
        for k in range(new - 1, -1, -1):
            stride[k] = shape[k + 1] * stride[k + 1] if k + 1 < len(shape) and shape[k] == 1 else 0
        return self._view(shape, stride, self._offset)

    def split(self, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
        before = (slice(None),) * self._axis(dim)
        return tuple(
            self[(*before, slice(at, at + split_size))] for at in range(0, max(self.shape[dim], 1), split_size)
        )

    def _axis(self, dim: int) -> int:
        rank = max(self.ndim, 1)
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
        return dim % rank

    # ---- elements

    def __getitem__(self, index: Any) -> Tensor:
        index = index if isinstance(index, tuple) else (index,)
        if any(_gathers(part) for part in index):
            picked = self._bits[tuple(_as_numpy_index(part) for part in index)]
            return _new(picked.shape, self.dtype)._write(picked)
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
                here = slice(at, at + self.ndim - used)
                shape += self.shape[here]
                stride += self._stride[here]
                at = here.stop
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
                    raise IndexError(f"index {place} is out of bounds for dimension {at} with size {self.shape[at]}")
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
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
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

    def to(self, *wanted: Any, device: Any = None, dtype: Any = None) -> Tensor:
        for part in wanted:
            if isinstance(part, Tensor):
                dtype = part.dtype
            elif isinstance(part, _dtypes.dtype):
                dtype = part
            else:
                check_device(part)
        check_device(device)
        return self if dtype in (None, self.dtype) else _new(self.shape, dtype, [self]).copy_(self)

    def cpu(self) -> Tensor:
        return self

    def new_empty(self, *size: Any, dtype: Any = None, device: Any = None) -> Tensor:
        check_device(device)
        return _new(_unpack(size), dtype or self.dtype)

    # ---- sums over dimensions

    def sum(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.sum, dim, keepdim, self.dtype if self.dtype.kind == "f" else int64)

    def mean(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        if self.dtype.kind != "f":
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {self.dtype._word}"
            )
        return self._reduce(np.mean, dim, keepdim, self.dtype)

    def var(self, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
        def compute(values: np.ndarray, **options: Any) -> np.ndarray:
            return np.var(values.astype(np.float64), ddof=correction, **options)

        return self._reduce(compute, dim, keepdim, self.dtype)

    def std(self, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
        def compute(values: np.ndarray, **options: Any) -> np.ndarray:
            return np.std(values.astype(np.float64), ddof=correction, **options)

        return self._reduce(compute, dim, keepdim, self.dtype)

    def amax(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.max, dim, keepdim, self.dtype)

    def amin(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.min, dim, keepdim, self.dtype)

    def max(self) -> Tensor:
        return self._reduce(np.max, None, False, self.dtype)

    def min(self) -> Tensor:
        return self._reduce(np.min, None, False, self.dtype)

    def all(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.all, dim, keepdim, bool_)

    def any(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return self._reduce(np.any, dim, keepdim, bool_)

    def _reduce(self, function: Callable, dim: Any, keepdim: bool, kind: dtype) -> Tensor:
        dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
        axes = tuple(self._axis(k) for k in dims) or None
        if not self.ndim:
            axes = None
        with np.errstate(all="ignore"):
            return from_values(np.asarray(function(self._values, axis=axes, keepdims=keepdim)), kind)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        kind = promote_operands([self, *(bound for bound in (min, max) if bound is not None)])
        with np.errstate(all="ignore"):
            return from_values(np.clip(self.to(kind)._values, min, max), kind, [self])


# ---- operations element by element: by name, what computes it and the kind of its result

_UNARY: dict[str, tuple[Callable, str]] = {
    "abs": (np.abs, "same"),
    "neg": (np.negative, "same"),
    "square": (np.square, "same"),
    "sqrt": (np.sqrt, "float"),
    "rsqrt": (lambda values: 1 / np.sqrt(values), "float"),
    "exp": (np.exp, "float"),
    "isnan": (np.isnan, "bool"),
    "isinf": (np.isinf, "bool"),
    "isfinite": (np.isfinite, "bool"),
}
_BINARY: dict[str, tuple[Callable, str]] = {
    "add": (np.add, "same"),
    "sub": (np.subtract, "same"),
    "mul": (np.multiply, "same"),
    "div": (np.true_divide, "float"),
    "pow": (np.power, "same"),
    "lt": (np.less, "bool"),
    "le": (np.less_equal, "bool"),
    "gt": (np.greater, "bool"),
    "ge": (np.greater_equal, "bool"),
    "eq": (np.equal, "bool"),
    "ne": (np.not_equal, "bool"),
}
_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq",
    "ne": "ne",
}  # fmt: skip
_CASTS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}


def _make_unary(function: Callable, result: str) -> Callable[[Tensor], Tensor]:
    def operation(input: Tensor) -> Tensor:
        kind = float32 if result == "float" and input.dtype.kind != "f" else input.dtype
        with np.errstate(all="ignore"):
            values = function(input.to(kind)._values)
        return from_values(values, bool_ if result == "bool" else kind, [input])

    return operation


def _make_binary(function: Callable, result: str) -> Callable[..., Any]:
    def operation(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
        kind = promote_operands([input, other])
        if result == "float" and kind.kind != "f":
            kind = float32
        tensors = [part for part in (input, other) if isinstance(part, Tensor)]
        _broadcast([part.shape for part in tensors])
        with np.errstate(all="ignore"):
            values = function(_operand(input, kind), _operand(other, kind))
        made = bool_ if result == "bool" else kind
        return from_values(values, made, tensors) if out is None else out._write(narrow(values, out.dtype))

    return operation


def _operand(part: Any, kind: dtype) -> np.ndarray:
    """A number or the elements of a tensor, in the dtype in which operations of ``kind`` compute."""
    return part.to(kind)._values if isinstance(part, Tensor) else np.asarray(part).astype(kind.computed)


def _swap(operation: Callable) -> Callable:
    return lambda self, other: operation(other, self)


def _only_known(operation: Callable) -> Callable:
    """An operator that leaves to Python what is neither tensor nor number."""

    def method(self: Tensor, other: Any) -> Any:
        return operation(self, other) if isinstance(other, (Tensor, bool, int, float, np.generic)) else NotImplemented

    return method


def _in_place(operation: Callable) -> Callable:
    def method(self: Tensor, other: Any) -> Tensor:
        result = operation(self, other)
        if "bif".index(result.dtype.kind) > "bif".index(self.dtype.kind):
            raise RuntimeError(
                f"result type {result.dtype._word} can't be cast to the desired output type {self.dtype._word}"
            )
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        return self.copy_(result)

    return method


OPERATIONS: dict[str, Callable] = {name: _make_unary(*how) for name, how in _UNARY.items()}
OPERATIONS |= {name: _make_binary(*how) for name, how in _BINARY.items()}
for _name, _operation in OPERATIONS.items():
    setattr(Tensor, _name, _operation)
for _sign, _name in _OPERATORS.items():
    _operation = OPERATIONS[_name]
    setattr(Tensor, f"__{_sign}__", _only_known(_operation))
    if _BINARY[_name][1] != "bool":
        setattr(Tensor, f"__r{_sign}__", _only_known(_swap(_operation)))
        setattr(Tensor, f"__i{_sign}__", _in_place(_operation))
        setattr(Tensor, f"{_name}_", _in_place(_operation))
Tensor.__neg__, Tensor.__abs__ = OPERATIONS["neg"], OPERATIONS["abs"]
for _name, _kind in _CASTS.items():
    setattr(Tensor, _name, lambda self, kind=_dtypes.DTYPES[_kind]: self.to(kind))


# ---- how tensors are made


def _make(storage: UntypedStorage, kind: dtype, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> Tensor:
    made = object.__new__(Tensor)
    made._storage, made.dtype, made.shape, made._stride, made._offset = (
        storage,
        kind,
        Size(shape),
        tuple(stride),
        offset,
    )
    return made


def _new(shape: Sequence[int], kind: dtype, like: Sequence[Tensor] = ()) -> Tensor:
    """A tensor of new memory, whose dimensions lie in memory as those of the tensors ``like``."""
    shape = tuple(operator.index(size) for size in shape)
    return _make(UntypedStorage(math.prod(shape) * kind.itemsize), kind, shape, _arrange(shape, like))


def from_values(values: np.ndarray, kind: dtype, like: Sequence[Tensor] = ()) -> Tensor:
    values = np.asarray(values)
    return _new(values.shape, kind, like)._write(narrow(values, kind))


def share(array: np.ndarray) -> Tensor:
    """A tensor on the memory of an array."""
    kind = _dtypes.of_numpy(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array with array.copy().) "
        )
    reach = 1 + sum((n - 1) * step // kind.itemsize for n, step in zip(array.shape, array.strides, strict=True))
    flat = np.lib.stride_tricks.as_strided(array, (reach if array.size else 0,), (kind.itemsize,))
    return _make(
        UntypedStorage(flat.view(np.uint8)), kind, array.shape, [step // kind.itemsize for step in array.strides]
    )


def check_device(wanted: Any) -> None:
    if wanted is not None:
        device(wanted)


def _pack(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor without gaps."""
    stride, packed = 1, []
    for size in reversed(shape):
        packed.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(packed))


def _arrange(shape: tuple[int, ...], like: Sequence[Tensor]) -> tuple[int, ...]:
    """The strides of a result, whose dimensions are ordered in memory as those of the operands: PyTorch's TensorIterator."""
    steps = []
    for tensor in like:
        new = len(shape) - tensor.ndim
        pairs = zip(tensor.shape, tensor._stride, shape[new:], strict=True)
        steps.append([0] * new + [0 if size == 1 != whole else step for size, step, whole in pairs])
    if len(steps) and all(tensor.shape == shape and tensor._stride == like[0]._stride for tensor in like):
        order = sorted(range(len(shape)), key=lambda k: like[0]._stride[k])
        dense = 1
        for k in order:
            if shape[k] > 1:
                if like[0]._stride[k] != dense:
                    break
                dense *= shape[k]
        else:
            return like[0]._stride
    if all(tensor.is_contiguous() for tensor in like if tensor.shape == shape) and any(t.shape == shape for t in like):
        pass
    order = list(reversed(range(len(shape))))  # the innermost first

    def compare(first: int, second: int) -> int:
        for step in steps:
            if step[first] and step[second]:
                if step[first] != step[second]:
                    return -1 if step[first] < step[second] else 1
                if shape[first] > shape[second]:
                    return 1
        return 0

    for k in range(1, len(order)):
        at = k
        for before in range(k - 1, -1, -1):
            found = compare(order[before], order[at])
            if found > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif found < 0:
                break
    stride, made = 1, [0] * len(shape)
    for k in order:
        made[k] = stride
        stride *= max(shape[k], 1)
    return tuple(made)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> None:
    if len(shapes) < 2:
        return
    first, second = shapes
    rank = max(len(first), len(second))
    for k in range(1, min(len(first), len(second)) + 1):
        a, b = first[-k], second[-k]
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {rank - k}"
            )


def _unpack(sizes: tuple) -> Sequence[int]:
    """Sizes that were given one by one, or as one sequence."""
    return sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) else sizes


def _resolve(shape: tuple, count: int) -> tuple[int, ...]:
    """The shape of ``count`` elements, with the size in place of -1."""
    wanted = tuple(operator.index(size) for size in _unpack(shape))
    known = math.prod(size for size in wanted if size != -1)
    free = wanted.count(-1)
    if free > 1:
        raise RuntimeError("only one dimension can be inferred")
    if known != count if not free else (not known or count % known):
        raise RuntimeError(f"shape '{list(wanted)}' is invalid for input of size {count}")
    return tuple(count // known if size == -1 else size for size in wanted)


def _find_view(old: tuple[int, ...], stride: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides under which memory of the old shape and strides has the new shape; None if there are none."""
    if not math.prod(old):
        return stride if old == new else _pack(new)
    if not old:
        return (1,) * len(new)
    found, at = [0] * len(new), len(new) - 1
    base, run, seen = stride[-1], 1, 1  # of the dimensions that lie in memory as one
    for k in range(len(old) - 1, -1, -1):
        run *= old[k]
        if k == 0 or (old[k - 1] != 1 and stride[k - 1] != run * base):
            while at >= 0 and (seen < run or new[at] == 1):
                found[at] = seen * base
                seen *= new[at]
                at -= 1
            if seen != run:
                return None
            if k:
                base, run, seen = stride[k - 1], 1, 1
    return tuple(found) if at == -1 else None


def _gathers(part: Any) -> bool:
    """Whether an index picks elements one by one, so that the result is a copy."""
    return isinstance(part, (list, np.ndarray, bool)) or (
        isinstance(part, Tensor) and (part.ndim > 0 or part.dtype is bool_)
    )


def _as_numpy_index(part: Any) -> Any:
    return part.numpy() if isinstance(part, Tensor) else part


def dtype_word(tensor: Tensor) -> str:
    return f"torch.{tensor.dtype._word}Tensor"
