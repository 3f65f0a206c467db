"""Launch an interpreted kernel on NumPy memory, without PyTorch.

Triton's own handling of arguments imports PyTorch to look at dtypes, which takes long. The grader's
child process handles raw bytes only. It gives the interpreter finished pointers and needs no
PyTorch.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_TRITON_NAMES = {"int32": "i32", "int64": "i64"}


def pointer(address: int, dtype: str):
    """Make a kernel argument that points at ``address``, to elements of ``dtype`` ("fp32", "fp16",
    "bf16", "int32", "int64")."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    element = tl.str_to_ty("*" + _TRITON_NAMES.get(dtype, dtype), None)
    assert isinstance(element, tl.pointer_type)
    return tl.tensor(TensorHandle(np.array([address], dtype=np.uint64), element), element)


def integer(value: int):
    """Make an integer kernel argument: 32 bits where the value fits, as Triton's launcher does."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    wide = not -(2**31) <= value < 2**31
    element = tl.int64 if wide else tl.int32
    return tl.tensor(
        TensorHandle(np.array([value], dtype=np.int64 if wide else np.int32), element), element
    )


def type_as_annotated(kernel: Any, arguments: Sequence) -> list:
    """Return the arguments of a launch in the types that the kernel's annotations ask for, as
    Triton's launcher makes them: of ``N: tl.int8`` any number becomes 8 bits.

    An annotation of a number for a pointer stays without effect; a compiler refuses such a kernel.
    """
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.jit import KernelParam

    typed = []
    parameters = inspect.signature(kernel.fn).parameters.values()
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=False)):
        asked = KernelParam(number, parameter, False, False).annotation_type
        value = argument if isinstance(argument, tl.tensor) else interpreter._implicit_cvt(argument)
        if asked and isinstance(value, tl.tensor):
            annotated_type: Any = tl.str_to_ty(asked, None)
            if value.dtype.is_ptr() and isinstance(annotated_type, tl.pointer_type):
                handle = interpreter.TensorHandle(value.handle.data, annotated_type)
                argument = tl.tensor(handle, annotated_type)
            elif not value.dtype.is_ptr() and not isinstance(annotated_type, tl.pointer_type):
                argument = interpreter.interpreter_semantic.cast(value, annotated_type)
        typed.append(argument)
    return [*typed, *arguments[len(typed) :]]


def launch(
    kernel,
    grid: Sequence[int],
    arguments: Sequence,
    constexprs: dict,
    programs: Sequence[int] | None = None,
) -> None:
    """Run every program of ``grid`` in order. ``arguments`` come from :func:`pointer` and
    :func:`integer`, or are floats.

    ``programs`` are the programs to run, of a grid of one dimension; the kernel sees their numbers
    and the whole grid. If it is empty or None, all programs run.

    Raises: triton.runtime.errors.InterpreterError with the kernel's own exception as its cause.
    """
    if not programs:
        kernel[tuple(grid)](*arguments, **constexprs)
        return
    with _numbering(grid, programs):
        kernel[(len(programs),)](*arguments, **constexprs)


@contextlib.contextmanager
def _numbering(grid: Sequence[int], programs: Sequence[int]) -> Iterator[None]:
    """Number the programs of a launch inside the block: its program i is ``programs[i]`` of
    ``grid``."""
    from triton.runtime.interpreter import interpreter_builder as builder

    set_dim, set_idx = builder.set_grid_dim, builder.set_grid_idx
    builder.set_grid_dim = lambda nx, ny, nz: set_dim(grid[0], ny, nz)
    builder.set_grid_idx = lambda x, y, z: set_idx(programs[x], y, z)
    try:
        yield
    finally:
        del builder.set_grid_dim, builder.set_grid_idx
