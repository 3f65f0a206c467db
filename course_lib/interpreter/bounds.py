"""Stop an interpreted kernel before its first access outside the tensors that it was given.

On a GPU such an access reads the values of another tensor, or raises an error much later; in the
stock interpreter it has no visible effect, or ends in a segmentation fault. Here it is an exception
that names the lane.

Whether an address belongs to a tensor is computed and not looked up in a list: an offset is divided
by the strides, from the largest to the smallest. Rows that lie 2^30 elements apart therefore cost
as much as packed rows.
"""

from __future__ import annotations

import contextlib
import contextvars
import dis
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.interpreter import hooks

# the most offsets that are listed one by one, for a layout that overlaps itself irregularly
_MOST_LISTED = 2**22


@dataclass(frozen=True)
class Region:
    """The memory of one tensor. ``address`` is the byte address of element 0; ``strides`` count
    elements and may be negative."""

    name: str
    address: int
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self):
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))
        object.__setattr__(self, "strides", tuple(int(stride) for stride in self.strides))
        if len(self.shape) != len(self.strides):
            raise ValueError(
                f"{self.name} has {len(self.shape)} sizes and {len(self.strides)} strides; it needs"
                " one stride a dimension"
            )

    @classmethod
    def of(cls, name: str, tensor) -> Region:
        """Make the region of a PyTorch tensor on the CPU, or of any object with data_ptr,
        element_size, shape and stride.

        Raises: CourseError if the tensor is on a device: the interpreter then works on a copy, at
        other addresses.
        """
        device = getattr(getattr(tensor, "device", None), "type", "cpu")
        if device != "cpu":
            words = _(
                "{name} is on {device}; accesses can only be checked on CPU tensors. Move it there"
                " with {name}.cpu()."
            )
            raise CourseError(words.format(name=name, device=device))
        return cls(
            name,
            tensor.data_ptr(),
            tensor.element_size(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
        )

    @property
    def elements(self) -> int:
        """Return the number of elements by the shape. An expanded tensor has one per index, as for
        ``numel``."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize

    @property
    def _below(self) -> int:
        """Return how many elements below element 0 the negative strides reach."""
        return sum(
            (size - 1) * -stride
            for size, stride in zip(self.shape, self.strides, strict=True)
            if stride < 0
        )

    @cached_property
    def low(self) -> int:
        """Return the lowest address of an element."""
        return self.address - self._below * self.itemsize

    @cached_property
    def high(self) -> int:
        """Return the highest address of an element; it is below ``low`` if there is no element."""
        if not self.elements:
            return self.low - 1
        return (
            self.low
            + sum(
                (size - 1) * abs(stride)
                for size, stride in zip(self.shape, self.strides, strict=True)
            )
            * self.itemsize
        )

    @cached_property
    def _layout(self) -> tuple[tuple[tuple[int, int], ...], np.ndarray | None]:
        """Return the numbers by which a byte offset from ``low`` is taken apart: (largest offset,
        stride) for each dimension, the outermost first, and the sorted offsets of the innermost
        dimensions where those interleave (else None)."""
        merged: list[tuple[int, int]] = []
        for stride, size in sorted(
            (abs(t), s) for s, t in zip(self.shape, self.strides, strict=True) if s > 1 and t
        ):
            for k, (inner_size, inner) in enumerate(merged):
                # its steps leave no gap: one longer dimension
                if stride % inner == 0 and stride // inner <= inner_size:
                    merged[k] = ((size - 1) * (stride // inner) + inner_size, inner)
                    break
            else:
                merged.append((size, stride))
        merged.sort(key=lambda dimension: dimension[1])
        steps, span, listed = [], 0, 0
        for k, (size, stride) in enumerate(merged):
            if stride <= span:
                listed = k + 1
            span += (size - 1) * stride
            steps.append((span * self.itemsize, stride * self.itemsize))
        if not listed:
            return tuple(reversed(steps)), None
        count = math.prod(size for size, _ in merged[:listed])
        if count > _MOST_LISTED:
            words = _(
                "{name} overlaps itself in {count} ways, too many to check: shape {shape}, strides"
                " {strides}."
            )
            raise CourseError(
                words.format(name=self.name, count=count, shape=self.shape, strides=self.strides)
            )
        offsets = np.zeros(1, np.int64)
        for size, stride in merged[:listed]:
            offsets = np.unique(
                offsets[:, None] + np.arange(size, dtype=np.int64) * (stride * self.itemsize)
            )
        return tuple(reversed(steps[listed:])), offsets

    def contains(self, addresses: np.ndarray) -> np.ndarray:
        """Return True for each of ``addresses`` (int64, any shape) that is exactly the address of
        an element."""
        inside = (addresses >= self.low) & (addresses <= self.high)
        return inside & self._on_elements(np.where(inside, addresses, self.low))

    def contains_all(self, addresses: np.ndarray, lowest: int, highest: int) -> bool:
        """Return True if all ``addresses`` are those of elements. ``lowest`` and ``highest`` are
        the extremes of them."""
        return (
            self.low <= lowest and highest <= self.high and bool(self._on_elements(addresses).all())
        )

    def _on_elements(self, addresses: np.ndarray) -> np.ndarray:
        """Do as :meth:`contains`, for addresses between ``low`` and ``high``."""
        steps, listed = self._layout
        offset, inside = addresses - self.low, None
        for k, (largest, stride) in enumerate(steps):
            if k:
                fits = offset <= largest
                inside = fits if inside is None else inside & fits
            # A bit mask is several times as fast as a division, and most innermost strides are the
            # size of the element.
            offset = (
                offset & (stride - 1)
                if stride & (stride - 1) == 0
                else offset - offset // stride * stride
            )
        on_element = (
            offset == 0
            if listed is None
            else listed[np.minimum(np.searchsorted(listed, offset), len(listed) - 1)] == offset
        )
        return on_element if inside is None else inside & on_element

    def index(self, element: int) -> tuple[tuple[int, ...], int]:
        """Return the index of the element offset ``element``, and the remainder (not 0 between two
        elements).

        Outside of the tensor the index is the one in a tensor whose outermost dimension has no end,
        and in which each row continues up to the start of the next row.
        """
        dimensions = [
            (abs(stride), size, k)
            for k, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True))
            if stride
        ]
        long = [stride for stride, size, _ in dimensions if size > 1]
        span = sum((size - 1) * stride for stride, size, _ in dimensions)
        # A dimension of size 1 may have any stride. Use the stride only if it is no step inside of
        # the other dimensions.
        order = [
            k
            for stride, size, k in dimensions
            if size > 1 or stride > span or stride < min(long, default=1)
        ]
        order.sort(key=lambda k: (-abs(self.strides[k]), k))
        index, remainder = [0] * len(self.shape), element + self._below
        for k in order:
            digit, remainder = divmod(remainder, abs(self.strides[k]))
            index[k] = digit if self.strides[k] > 0 else self.shape[k] - 1 - digit
        return tuple(index), remainder


def find_region(regions: Sequence[Region], addresses: np.ndarray, itemsize: int) -> Region | None:
    """Return the first region in which all ``addresses`` (flat, not empty) are elements of
    ``itemsize`` bytes; None if there is none."""
    lowest, highest = int(addresses.min()), int(addresses.max())
    for region in regions:
        if region.itemsize == itemsize and region.contains_all(addresses, lowest, highest):
            return region
    return None


class OutOfBounds(Exception):
    """Raised at a kernel's access outside its tensors. The message describes the access in words,
    the attributes as data.

    ``kind`` and ``program`` are those of :class:`hooks.MemoryAccess`. ``tensor`` is the name of the
    region that the kernel meant to access, None if there are no regions. ``count`` of the ``lanes``
    unmasked lanes miss it; the first of these has the flat index ``lane`` in the block. ``element``
    is the offset of this lane from element 0, in elements, rounded down. ``row`` and ``column`` are
    the place of ``element``; for a tensor of one dimension ``row`` is None, for three dimensions it
    is the flat index of the leading ones; both are None if ``tensor`` is. ``file`` and ``line`` are
    those of the kernel, None if unknown.
    """

    def __init__(
        self, message: str, *, kind: str, program: tuple[int, int, int], tensor: str | None,
        count: int, lanes: int, lane: int,
        element: int | None, row: int | None, column: int | None, file: str | None,
        line: int | None,
    ):  # fmt: skip
        super().__init__(message)
        self.kind, self.program, self.tensor = kind, program, tensor
        self.count, self.lanes, self.lane = count, lanes, lane
        self.element, self.row, self.column = element, row, column
        self.file, self.line = file, line


_open_blocks: contextvars.ContextVar[tuple] = contextvars.ContextVar("open_blocks", default=())


@contextlib.contextmanager
def checked(regions: Iterable[Region]) -> Iterator[None]:
    """Check every load, store and atomic of the kernels launched inside the block, interleaved ones
    included.

    All unmasked lanes of an access must be elements of one region, with the item size of the
    region. A row that continues into the memory of the next tensor is therefore stopped at the
    first lane in that tensor, and an access that gathers from two tensors at once is a fault.
    Blocks may be nested: an access must then be right for each of them.

    Raises: OutOfBounds, itself and not wrapped in Triton's InterpreterError; CourseError if this
    process compiles its kernels, or a region overlaps itself in too many ways.
    """
    require_interpreter("accesses can only be checked")
    regions, token = tuple(regions), object()
    for region in regions:
        region._layout  # noqa: B018 - computed here, so that a layout which cannot be checked is refused before the kernel runs

    def check(access: hooks.MemoryAccess) -> None:
        if token not in _open_blocks.get():
            return  # the kernel of a widget, which runs in another thread
        live = access.live()
        if live.size and find_region(regions, live, access.itemsize) is None:
            raise _describe_fault(regions, access, live)

    # The block belongs to the context of its thread.
    before = _open_blocks.set((*_open_blocks.get(), token))
    try:
        with hooks.observing(check):
            yield
    except OutOfBounds:
        raise
    except Exception as wrapped:
        fault = _under(wrapped)
        if fault is None:
            raise
        raise fault from None
    finally:
        _open_blocks.reset(before)


def require_interpreter(purpose: str) -> None:
    """Require that this process interprets its kernels, because hooks see only interpreted ones.

    Raises: CourseError, whose message begins with ``purpose``, if this process compiles its
    kernels.
    """
    from triton.language import standard
    from triton.runtime.interpreter import InterpretedFunction

    # the type of a library function shows in which mode Triton was imported
    if not isinstance(standard.sum, InterpretedFunction):
        raise CourseError(
            f"{purpose} in CPU mode, and this process compiles its kernels. Set COURSE_DEVICE=cpu"
            " and start again."
        )


def _under(error: BaseException) -> OutOfBounds | None:
    """Return the fault inside the exceptions in which Triton wrapped it, one per function of the
    kernel that it passed."""
    link: BaseException | None = error
    while link is not None and not isinstance(link, OutOfBounds):
        link = link.__cause__
    return link


def _describe_fault(
    regions: Sequence[Region], access: hooks.MemoryAccess, live: np.ndarray
) -> OutOfBounds:
    where = hooks.line_of_kernel()
    file, line = where or (None, None)
    region = _guess_meant_region(regions, live, where)
    facts = {
        "kind": access.kind,
        "program": access.program,
        "lanes": live.size,
        "file": file,
        "line": line,
    }
    end = _("; line {line}").format(line=line) if line is not None else ""
    program_name, does = _name_program(access.program), _describe_operation(access.kind)
    if region is None:
        lane = int(np.flatnonzero(access.mask)[0])
        words = _("{program} {does}, and the kernel was given no tensor{end}")
        return OutOfBounds(
            words.format(program=program_name, does=does, end=end),
            tensor=None,
            count=live.size,
            lane=lane,
            element=None,
            row=None,
            column=None,
            **facts,
        )
    same_size = region.itemsize == access.itemsize
    hits = (
        region.contains(access.addresses) & access.mask if same_size else np.zeros_like(access.mask)
    )
    misses = access.mask & ~hits
    lane = int(np.flatnonzero(misses)[0])
    element, into = divmod(int(access.addresses.flat[lane]) - region.address, region.itemsize)
    index, remainder = region.index(element)
    row = _find_row_of_lanes_before(region, access.addresses, hits, lane)
    if row is not None:
        # The lanes before it lie in one row, so this lane has passed the end of that row, and is
        # not meant for a row below.
        row_start = sum(i * stride for i, stride in zip(row, region.strides, strict=False))
        column, remainder = divmod(element - row_start, region.strides[-1])
        index = (*row, column)
    facts |= {
        "tensor": region.name, "count": int(misses.sum()), "lane": lane, "element": element,
        "row": _flat_row(region, index), "column": index[-1] if index else 0,
    }  # fmt: skip
    if not same_size:
        words = _(
            "{program} {does} {wide} bytes a lane in {tensor}, whose elements are {itemsize} bytes:"
            " the pointer has another dtype than the tensor{end}"
        )
        words = words.format(
            program=program_name,
            does=does,
            wide=access.itemsize,
            tensor=region.name,
            itemsize=region.itemsize,
            end=end,
        )
        return OutOfBounds(words, **facts)
    block_index = (
        np.unravel_index(lane, access.addresses.shape) if access.addresses.ndim > 1 else (lane,)
    )
    lane_text = (
        f"({', '.join(str(int(i)) for i in block_index)})" if len(block_index) > 1 else str(lane)
    )
    count = _("{count} of {lanes} lanes") if live.size > 1 else _("{count} of {lanes} lane")
    count = _("{count} of the {lanes} unmasked lanes") if access.mask.size > live.size else count
    message = _("{program} {does} outside {tensor}: {count}, the first is lane {lane}: {place} "
                "({size}){end}").format(
        program=program_name, does=does, tensor=region.name,
        count=count.format(count=facts["count"], lanes=live.size), lane=lane_text,
        place=_describe_place(region, element, into, index, remainder),
        size=_describe_region(region), end=end,
    )  # fmt: skip
    return OutOfBounds(message, **facts)


def _guess_meant_region(
    regions: Sequence[Region], live: np.ndarray, where: tuple[str, int] | None
) -> Region | None:
    """Return the region that the kernel probably meant: that of the pointer named in the call, else
    the one that holds most lanes, else the nearest."""
    if not regions:
        return None
    named = _find_named_in_call(regions, where)
    if named is not None:
        return named
    hits = [int(region.contains(live).sum()) for region in regions]
    if max(hits):
        return regions[hits.index(max(hits))]
    first_address = int(live[0])
    return min(
        regions, key=lambda region: max(region.low - first_address, first_address - region.high, 0)
    )


def _find_named_in_call(regions: Sequence[Region], where: tuple[str, int] | None) -> Region | None:
    """Return the region of the first pointer in the source of the current call; None if it cannot
    be found.

    With a wrong row, the addresses of ``tl.store(y_ptr + row * stride, x)`` may be nearest to any
    tensor. The name ``y_ptr`` decides.
    """
    frame = _find_frame(where)
    if frame is None:
        return None
    call_position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if None in call_position:
        return None
    begin, end = (call_position[0], call_position[2]), (call_position[1], call_position[3])
    for instruction in dis.get_instructions(frame.f_code):
        at = instruction.positions
        if (
            not instruction.opname.startswith("LOAD_")
            or at is None
            or None in (at.lineno, at.col_offset)
        ):
            continue
        if begin <= (at.lineno, at.col_offset) and (at.end_lineno, at.end_col_offset) <= end:
            names = (
                instruction.argval
                if isinstance(instruction.argval, tuple)
                else (instruction.argval,)
            )
            for name in names:
                pointers = (
                    _read_pointers(frame.f_locals.get(name)) if isinstance(name, str) else None
                )
                if pointers is not None:
                    return _find_region_pointed_into(regions, pointers, name.removesuffix("_ptr"))
    return None


def _find_frame(where: tuple[str, int] | None) -> FrameType | None:
    frame = sys._getframe(1) if where else None
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != where:
        frame = frame.f_back
    return frame


def _read_pointers(value) -> np.ndarray | None:
    """Return the addresses in a variable of a kernel, flat. For a tensor descriptor it is the
    address that it was made of. None if the variable holds no pointers."""
    import triton.language as tl

    made_of: Any = getattr(value, "handle", None)
    # Triton 3.9 has no block pointers, and no class for them
    if hasattr(made_of, "base") and hasattr(made_of, "materialize_pointers"):
        handle: Any = made_of.base
    elif isinstance(value, tl.tensor) and value.dtype.scalar.is_ptr():
        handle = value.handle
    else:
        return None
    return np.asarray(handle.data).astype(np.int64).ravel()


def _find_region_pointed_into(
    regions: Sequence[Region], pointers: np.ndarray, stem: str
) -> Region | None:
    def score(region: Region) -> tuple[int, bool]:
        return (
            int(((pointers >= region.low) & (pointers <= region.high)).sum()),
            region.name == stem,
        )

    best = max(regions, key=score)
    return best if score(best)[0] else None


def _find_row_of_lanes_before(
    region: Region, addresses: np.ndarray, hits: np.ndarray, lane: int
) -> tuple[int, ...] | None:
    """Return the index without the column of the lanes before ``lane``, in the same line of the
    block; None if there are fewer than two such lanes, or if they lie in different rows."""
    if not region.shape or not region.strides[-1]:
        return None
    start = lane - lane % (addresses.shape[-1] if addresses.ndim else 1)
    before = start + np.flatnonzero(hits.ravel()[start:lane])
    if before.size < 2:
        return None
    (*first_row, a), (*last_row, b) = (
        region.index((int(addresses.flat[k]) - region.address) // region.itemsize)[0]
        for k in before[[0, -1]]
    )
    return tuple(first_row) if first_row == last_row and a != b else None


def _flat_row(region: Region, index: tuple[int, ...]) -> int | None:
    if len(index) < 2:
        return None
    row = 0
    for digit, size in zip(index[:-1], region.shape[:-1], strict=True):
        row = row * size + digit
    return row


def _name_program(program: tuple[int, int, int]) -> str:
    return _("program {program}").format(program=program[0] if program[1:] == (0, 0) else program)


def _describe_operation(kind: str) -> str:
    if kind in ("load", "store"):
        return _("loads") if kind == "load" else _("stores")
    if kind == "cas":
        return _("compares and swaps")
    plain = {"fadd": "add", "umax": "max", "umin": "min"}.get(kind, kind)
    return _("does an atomic {operation}").format(operation=plain)


def _describe_place(
    region: Region, element: int, into: int, index: tuple[int, ...], remainder: int
) -> str:
    """Describe the place of an address that is not the address of an element."""
    if into:
        words = _("{count} byte into element {element}, so it is aligned to no element")
        words = (
            words
            if into == 1
            else _("{count} bytes into element {element}, so it is aligned to no element")
        )
        return words.format(count=into, element=element)
    if not region.elements:
        return _("element {element} of a tensor that has none").format(element=element)
    below = (region.low - region.address) // region.itemsize - element
    if below > 0:
        return _("element {element}, which is {count} before the start of {tensor}").format(
            element=element, count=below, tensor=region.name
        )
    if len(index) < 2:
        above = element - (region.high - region.address) // region.itemsize
        words = _("element {element}, which is between two elements of {tensor}")
        words = (
            _("element {element}, which is {count} past the end of {tensor}")
            if above > 0
            else words
        )
        return words.format(element=element, count=above, tensor=region.name)
    *leading, column = index
    row = str(leading[0]) if len(leading) == 1 else f"({', '.join(map(str, leading))})"
    if any(not 0 <= digit < size for digit, size in zip(leading, region.shape[:-1], strict=True)):
        last_row = ", ".join(str(size - 1) for size in region.shape[:-1])
        last_row = last_row if len(leading) == 1 else f"({last_row})"
        words = _(
            "element {element}, which is column {column} of row {row}, and the last row is {last}"
        )
        return words.format(element=element, column=column, row=row, last=last_row)
    past = column - region.shape[-1] + 1
    if past > 0:
        return _("element {element}, which is {count} past the end of row {row}").format(
            element=element, count=past, row=row
        )
    if column < 0:
        return _("element {element}, which is {count} before the start of row {row}").format(
            element=element, count=-column, row=row
        )
    words = _("element {element}, which is between columns {column} and {next} of row {row}")
    return words.format(element=element, column=column, next=column + 1, row=row)


def _describe_region(region: Region) -> str:
    if len(region.shape) > 2:
        words = _("{tensor} has shape {shape} and strides {strides}")
        return words.format(tensor=region.name, shape=region.shape, strides=region.strides)
    if len(region.shape) < 2:
        words = (
            _("{tensor} has {count} element")
            if region.elements == 1
            else _("{tensor} has {count} elements")
        )
        apart = region.strides[0] if region.shape else 1
        return words.format(tensor=region.name, count=region.elements) + (
            _(", {apart} apart").format(apart=apart) if apart != 1 else ""
        )
    (rows, columns), (row_stride, column_stride) = region.shape, region.strides
    words = _("{tensor} has {rows} of {columns}").format(
        tensor=region.name,
        rows=(_("{count} row") if rows == 1 else _("{count} rows")).format(count=rows),
        columns=(_("{count} column") if columns == 1 else _("{count} columns")).format(
            count=columns
        ),
    )
    if row_stride != columns * column_stride:
        words += _(", {apart} apart").format(apart=row_stride)
    return words + (
        _(", columns {apart} apart").format(apart=column_stride) if column_stride != 1 else ""
    )
