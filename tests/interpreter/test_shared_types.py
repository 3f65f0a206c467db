"""Values that share the types and shapes which the first of them worked out: the same as Triton's
own, and refused as there."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language import core

import course_lib

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: the interpreter is not in use"
)
NUMBERS = (
    tl.int1,
    tl.int8,
    tl.uint16,
    tl.int64,
    tl.float16,
    tl.bfloat16,
    tl.float32,
    tl.float64,
    tl.float8e5,
)


@pytest.mark.parametrize("sizes", [(1,), (8,), (2, 4), (4, 2)], ids=str)
@pytest.mark.parametrize(
    "dtype", [*NUMBERS, tl.pointer_type(tl.float32), tl.pointer_type(tl.float16)], ids=str
)
def test_a_block_says_of_itself_what_was_asked_for_however_it_is_written(dtype, sizes):
    for shape in (list(sizes), core.tuple(sizes), [tl.constexpr(size) for size in sizes]):
        for made in (
            tl.block_type(dtype, shape),
            tl.block_type(tl.int32, shape).with_element_ty(dtype),
        ):
            assert tuple(made.shape) == sizes and made.numel == int(np.prod(sizes))
            assert made.element_ty is dtype and made.scalar is dtype and made.is_block()
            assert str(dtype) in made.name and made == tl.block_type(dtype, list(sizes))
            value = core.tensor(None, made)
            assert tuple(value.shape) == sizes and value.type is made and value.dtype is dtype
            assert (
                all(isinstance(size, tl.constexpr) for size in value.shape)
                and value.numel == made.numel
            )


def test_types_that_differ_are_not_equal():
    types = [
        tl.block_type(dtype, sizes) for dtype in NUMBERS for sizes in ([4], [2, 2], [1, 4], [4, 1])
    ]
    assert all((one == other) == (one is other) for one in types for other in types)
    assert all((one == other) == (one is other) for one in NUMBERS for other in NUMBERS)


@pytest.mark.parametrize(
    ("shape", "error", "words"),
    [
        ([3], ValueError, "power of 2"),
        ([2**30], ValueError, "maximum tensor numel"),
        ([], TypeError, "0d block_type"),
        ([4.0], TypeError, "must have type"),
        ((4,), AssertionError, None),
    ],
)
def test_a_shape_that_triton_refuses_is_refused_each_time(shape, error, words):
    tl.block_type(tl.float32, [4])  # 4.0 is equal to its size
    for _ in range(2):
        with pytest.raises(error, match=words):
            tl.block_type(tl.float32, shape)


@triton.jit
def add_kernel(y_ptr, rows: tl.constexpr, cols: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, cols), tl.arange(0, rows) + tl.arange(0, cols))


def test_shapes_that_do_not_fit_are_refused_each_time():
    y = torch.zeros(8, dtype=torch.int32)
    for _ in range(2):
        with pytest.raises(Exception, match="incompatible dimensions"):
            add_kernel[(1,)](y, 4, 8)
    add_kernel[(1,)](y, 8, 8)
    assert y.tolist() == [2 * n for n in range(8)]


def test_no_value_is_kept():
    class Handle: ...

    handle = Handle()
    core.tensor(handle, tl.block_type(tl.float32, [2, 2, 2, 2, 2]))  # the first of its shape
    seen = weakref.ref(handle)
    del handle
    gc.collect()
    assert seen() is None
