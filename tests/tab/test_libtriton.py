"""The stand-in for Triton's native library does to memory what the native library does."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir, native_specialize_impl
from triton.backends.compiler import BaseBackend

from course_lib.base import paths

_SPEC = importlib.util.spec_from_file_location(
    "tab_libtriton", paths.PACKAGE / "tab/standins/libtriton.py"
)
assert _SPEC is not None and _SPEC.loader is not None
standin = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(standin)

DTYPES = (np.float32, np.float64, np.float16, np.uint16, np.int32, np.int64, np.uint8, np.uint32)


@st.composite
def blocks(draw, dtypes=DTYPES):
    """Memory with odd bytes in it, addresses in it (some twice, some not aligned), a mask, and
    values."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(st.sampled_from([(1,), (4,), (8,), (2, 4), (2, 2, 2)]))
    count = int(np.prod(shape))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    memory = rng.integers(0, 256, 256, dtype=np.uint8)
    offsets = rng.integers(0, 16, count) * dtype.itemsize + (
        draw(st.integers(0, 3)) if draw(st.booleans()) else 0
    )
    mask = (rng.random(count) < draw(st.sampled_from([0.0, 0.5, 1.0]))).astype(
        draw(st.sampled_from([bool, np.int8, np.int32]))
    )
    values = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    return memory, offsets.reshape(shape), mask.reshape(shape), values.reshape(shape), dtype


def apply(library, function, memory, offsets):
    """The memory after the function, and what it returned."""
    memory = memory.copy()
    addresses = np.uint64(memory.ctypes.data) + offsets.astype(np.uint64)
    returned = function(library, addresses)
    return memory.tobytes(), None if returned is None else (
        returned.dtype,
        returned.shape,
        returned.tobytes(),
    )


@given(blocks())
def test_load(block):
    memory, offsets, mask, other, dtype = block
    load = lambda library, at: library.load(at, mask, other, dtype)  # noqa: E731
    assert apply(standin.interpreter, load, memory, offsets) == apply(native, load, memory, offsets)


@given(blocks())
def test_store(block):
    memory, offsets, mask, values, _ = block
    store = lambda library, at: library.store(at, values, mask)  # noqa: E731
    assert apply(standin.interpreter, store, memory, offsets) == apply(
        native, store, memory, offsets
    )


INTEGERS = ("ADD", "AND", "OR", "XOR", "XCHG", "MAX", "MIN")


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [(name, (np.int32, np.int64)) for name in INTEGERS]
    + [(name, (np.uint32, np.uint64)) for name in ("UMAX", "UMIN")]
    + [("FADD", (np.float32, np.float64))],
)
def test_atomics(name, dtypes):
    @given(blocks(dtypes))
    def compare(block):
        memory, offsets, mask, values, dtype = block
        offsets = offsets // dtype.itemsize * dtype.itemsize
        if name == "FADD":  # small numbers: the bits of a NaN are not defined
            memory = (
                np.random.default_rng(0)
                .standard_normal(256 // dtype.itemsize)
                .astype(dtype)
                .view(np.uint8)
            )
            values = np.resize(np.array([1.5, -2.25, 0.0], dtype), values.shape)
        update = lambda library, at: library.atomic_rmw(  # noqa: E731
            getattr(library.RMW_OP, name), at, values, mask, library.MEM_SEMANTIC.ACQUIRE_RELEASE
        )
        live = np.broadcast_to(mask, offsets.shape).astype(bool)
        mine = apply(standin.interpreter, update, memory, offsets)
        theirs = apply(native, update, memory, offsets)
        assert mine[0] == theirs[0]
        before = [
            np.frombuffer(returned[2] if returned else b"", dtype)
            .reshape(offsets.shape)[live]
            .tobytes()
            for _, returned in (mine, theirs)
        ]
        assert before[0] == before[1]

    compare()


@given(blocks((np.int32, np.int64)), st.booleans())
def test_compare_and_swap(block, hits):
    memory, offsets, _, values, dtype = block
    offsets = offsets // dtype.itemsize * dtype.itemsize
    expected = memory.view(dtype)[offsets // dtype.itemsize] if hits else values

    def swap(library, at):
        return library.atomic_cas(at, expected, values, library.MEM_SEMANTIC.ACQUIRE)

    assert apply(standin.interpreter, swap, memory, offsets) == apply(native, swap, memory, offsets)


def test_the_enums_have_the_names_that_triton_prints():
    for enum in standin._ENUMS:
        for module in (ir, native):
            real = getattr(module, enum, None)
            if real is not None:
                mine = getattr(standin.ir, enum)
                assert {str(member) for member in real.__members__.values()} <= {
                    str(member) for member in mine
                }, enum


@pytest.mark.parametrize(
    "value", [0, 1, 16, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, True, 0.5]
)
def test_arguments_have_the_type_that_triton_gives_them(value):
    assert (
        standin.native_specialize_impl(None, value)[0]
        == native_specialize_impl(BaseBackend, value, False, False, False)[0]
    )


def test_an_argument_without_a_type_is_refused():
    with pytest.raises(TypeError, match="list"):
        standin.native_specialize_impl(None, [1])
