"""The bounds checker: wrong kernels stop before they touch memory and the fault names the lane;
right ones never do."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import example, given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base.errors import CourseError
from course_lib.interpreter import hooks, launch
from course_lib.interpreter.bounds import OutOfBounds, Region, checked, find_region

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: the interpreter is not in use"
)
HERE = str(Path(__file__).resolve())


@triton.jit
def copy_kernel(
    x_ptr, y_ptr, n, MASK_LOAD: tl.constexpr, MASK_STORE: tl.constexpr, SLACK: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n + SLACK
    if MASK_LOAD:  # noqa: SIM108 - two lines, told apart by a fault
        x = tl.load(x_ptr + offsets, mask=mask)  # copy: masked load
    else:
        x = tl.load(x_ptr + offsets)  # copy: bare load
    if MASK_STORE:
        tl.store(y_ptr + offsets, x, mask=mask)  # copy: masked store
    else:
        tl.store(y_ptr + offsets, x)  # copy: bare store


@triton.jit
def rows_kernel(x_ptr, y_ptr, stride_x, stride_y, N, SLACK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N + SLACK
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N)  # rows: load
    tl.store(y_ptr + row * stride_y + cols, x, mask=mask)  # rows: store


@triton.jit
def tile_kernel(
    x_ptr, y_ptr, stride_x_row, stride_x_col, stride_y_row, stride_y_col, M, N,
    MASK_ROWS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols[None, :] < N
    if MASK_ROWS:
        mask = mask & (rows[:, None] < M)
    x_tile_ptr = x_ptr + rows[:, None] * stride_x_row + cols[None, :] * stride_x_col
    x = tl.load(x_tile_ptr, mask=mask)  # tile: load
    y_tile_ptr = y_ptr + rows[:, None] * stride_y_row + cols[None, :] * stride_y_col
    tl.store(y_tile_ptr, x, mask=mask)  # tile: store


@triton.jit
def shifted_kernel(x_ptr, y_ptr, shift, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    tl.store(y_ptr + lanes + shift, x)  # shifted: store


@triton.jit
def alternating_kernel(x_ptr, y_ptr, far, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = lanes + (lanes % 2) * far
    x = tl.load(x_ptr + offsets, mask=lanes % 2 == 0, other=-1.0)
    tl.store(y_ptr + offsets, x, mask=lanes % 2 == 0)


@triton.jit
def count_kernel(counts_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    bins = tl.load(bins_ptr + lanes, mask=lanes < n, other=0)
    tl.atomic_add(counts_ptr + bins, 1.0, mask=lanes < n)  # count: add


@triton.jit
def swap_kernel(lock_ptr, at):
    tl.atomic_cas(lock_ptr + at, 0, 1)  # swap: cas


@triton.jit
def as_fp32_kernel(y_ptr):
    wide = y_ptr.to(tl.pointer_type(tl.float32))
    tl.store(wide + tl.arange(0, 2), 1.0)  # wide: store


@triton.jit
def half_step_kernel(x_ptr, y_ptr):
    bytes_ptr = x_ptr.to(tl.pointer_type(tl.int8)) + tl.program_id(0) + 2
    tl.store(y_ptr, tl.load(bytes_ptr.to(tl.pointer_type(tl.float32))))  # half: load


@triton.jit
def store_row(ptr, cols, x, N):
    tl.store(ptr + cols, x, mask=cols <= N)  # helper: store


@triton.jit
def with_helper_kernel(y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    store_row(y_ptr, cols, cols.to(tl.float32), N)


@triton.jit
def block_pointer_kernel(
    x_ptr, y_ptr, N, start, CHECK_LOAD: tl.constexpr, CHECK_STORE: tl.constexpr, BLOCK: tl.constexpr
):
    source = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (BLOCK,), (0,))
    target = tl.make_block_ptr(y_ptr, (N,), (1,), (start,), (BLOCK,), (0,))
    source = tl.advance(source, (start,))
    x = tl.load(source, boundary_check=CHECK_LOAD, padding_option="zero")  # block pointer: load
    tl.store(target, x, boundary_check=CHECK_STORE)  # block pointer: store


@triton.jit
def block_pointer_tile_kernel(
    x_ptr, y_ptr, M, N, stride_m, stride_n, row, CHECK_LOAD: tl.constexpr,
    CHECK_STORE: tl.constexpr,
    FIRST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    source = tl.make_block_ptr(
        x_ptr, (M, N), (stride_m, stride_n), (0, 0), (ROWS, BLOCK), (FIRST, 1 - FIRST)
    )
    target = tl.make_block_ptr(
        y_ptr, (M, N), (stride_m, stride_n), (row, 0), (ROWS, BLOCK), (FIRST, 1 - FIRST)
    )
    x = tl.load(tl.advance(source, (row, 0)), boundary_check=CHECK_LOAD)  # block tile: load
    tl.store(target, x, boundary_check=CHECK_STORE)  # block tile: store


@triton.jit
def descriptor_kernel(x_ptr, y_ptr, n_x, n_y, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, shape=[n_x], strides=[1], block_shape=[BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, shape=[n_y], strides=[1], block_shape=[BLOCK])
    x = source.load([0])  # descriptor: load
    target.store([0], x)  # descriptor: store


def line(marker: str) -> int:
    """The line of this file that ends with ``# marker``."""
    (number,) = [
        n
        for n, text in enumerate(Path(HERE).read_text().splitlines(), 1)
        if text.endswith("# " + marker)
    ]
    return number


def regions(**tensors) -> list[Region]:
    return [Region.of(name, tensor) for name, tensor in tensors.items()]


def fault(kernel, grid, *arguments, given_, **constexprs) -> OutOfBounds:
    with pytest.raises(OutOfBounds) as caught, checked(given_):
        kernel[grid](*arguments, **constexprs)
    assert caught.value.file == HERE
    return caught.value


def inside(buffer: torch.Tensor, start: int, shape, strides) -> torch.Tensor:
    """A tensor in the middle of ``buffer``, so that what lies around it can be looked at."""
    return buffer.as_strided(shape, strides, start)


def facts(error: OutOfBounds) -> tuple:
    return (
        error.kind,
        error.program,
        error.tensor,
        error.count,
        error.lanes,
        error.lane,
        error.element,
        error.row,
        error.column,
        error.line,
    )


# --- wrong kernels --------------------------------------------------------------------------------


def test_an_unmasked_load_past_the_end():
    x, y = torch.ones(64)[:13], torch.zeros(64)[:13]
    error = fault(
        copy_kernel,
        (2,),
        x,
        y,
        13,
        given_=regions(x=x, y=y),
        MASK_LOAD=False,
        MASK_STORE=True,
        SLACK=0,
        BLOCK=8,
    )
    assert facts(error) == ("load", (1, 0, 0), "x", 3, 8, 5, 13, None, 13, line("copy: bare load"))
    assert (
        str(error)
        == "program 1 loads outside x: 3 of 8 lanes, the first is lane 5: element 13, which is 1"
        f" past the end of x (x has 13 elements); line {line('copy: bare load')}"
    )


def test_an_unmasked_store_leaves_the_memory_as_it_was():
    room = torch.full((64,), 7.0)
    x, y = torch.ones(13), inside(room, 16, (13,), (1,))
    error = fault(
        copy_kernel,
        (2,),
        x,
        y,
        13,
        given_=regions(x=x, y=y),
        MASK_LOAD=True,
        MASK_STORE=False,
        SLACK=0,
        BLOCK=8,
    )
    assert facts(error) == (
        "store",
        (1, 0, 0),
        "y",
        3,
        8,
        5,
        13,
        None,
        13,
        line("copy: bare store"),
    )
    assert y[:8].eq(1).all()  # program 0 was right, and ran
    assert y[8:].eq(7).all()  # not one lane of the faulty store, not even those inside y
    assert room[:16].eq(7).all() and room[29:].eq(7).all()


def test_a_mask_that_is_off_by_one():
    x, y = torch.ones(64), torch.zeros(64)[:13]
    error = fault(
        copy_kernel,
        (2,),
        x,
        y,
        13,
        given_=regions(x=x, y=y),
        MASK_LOAD=True,
        MASK_STORE=True,
        SLACK=1,
        BLOCK=8,
    )
    assert facts(error) == (
        "store",
        (1, 0, 0),
        "y",
        1,
        6,
        5,
        13,
        None,
        13,
        line("copy: masked store"),
    )
    assert "1 of the 6 unmasked lanes" in str(error)


def test_a_mask_off_by_one_at_the_last_row_is_past_the_end_of_that_row():
    x, y = torch.ones(3, 5), torch.zeros(64).as_strided((3, 5), (5, 1))
    error = fault(rows_kernel, (3,), x, y, 5, 5, 5, given_=regions(x=x, y=y), SLACK=1, BLOCK=8)
    assert facts(error) == ("store", (2, 0, 0), "y", 1, 6, 5, 15, 2, 5, line("rows: store"))
    assert "element 15, which is 1 past the end of row 2 (y has 3 rows of 5 columns)" in str(error)


def test_a_row_that_runs_into_the_padding_between_rows():
    x, y = torch.ones(3, 50), torch.full((3, 59), 7.0)[:, :50]
    error = fault(rows_kernel, (3,), x, y, 50, 59, 50, given_=regions(x=x, y=y), SLACK=3, BLOCK=64)
    assert facts(error) == ("store", (0, 0, 0), "y", 3, 53, 50, 50, 0, 50, line("rows: store"))
    assert "which is 1 past the end of row 0 (y has 3 rows of 50 columns, 59 apart)" in str(error)


def test_past_the_end_of_a_row_of_one_column():
    x, y = torch.ones(3, 1), torch.zeros(3, 59)[:, :1]
    error = fault(rows_kernel, (3,), x, y, 1, 59, 1, given_=regions(x=x, y=y), SLACK=1, BLOCK=4)
    assert facts(error) == ("store", (0, 0, 0), "y", 1, 2, 1, 1, 0, 1, line("rows: store"))
    assert "1 past the end of row 0 (y has 3 rows of 1 column, 59 apart)" in str(error)


def test_a_wrong_row_stride_hits_the_padding():
    x, y = torch.ones(3, 50), torch.zeros(3, 59)[:, :50]
    error = fault(rows_kernel, (3,), x, y, 50, 50, 50, given_=regions(x=x, y=y), SLACK=0, BLOCK=64)
    # row 1 is thought to start at 50, which is the first of the nine elements between the rows
    assert facts(error) == ("store", (1, 0, 0), "y", 9, 50, 0, 50, 0, 50, line("rows: store"))


def test_a_read_before_the_start():
    room = torch.zeros(64)
    x, y = inside(room, 32, (8,), (1,)), torch.zeros(8)
    error = fault(shifted_kernel, (1,), y, x, -3, given_=regions(x=x, y=y), BLOCK=8)
    assert facts(error) == ("store", (0, 0, 0), "x", 3, 8, 0, -3, None, -3, line("shifted: store"))
    assert "element -3, which is 3 before the start of x" in str(error)


def test_a_pointer_far_away_does_not_take_the_process_down():
    x, y = torch.ones(8), torch.zeros(8)
    error = fault(shifted_kernel, (1,), x, y, 10**12, given_=regions(x=x, y=y), BLOCK=8)
    # nothing says which tensor an address so far away belongs to, but the call does: y_ptr
    assert facts(error) == (
        "store",
        (0, 0, 0),
        "y",
        8,
        8,
        0,
        10**12,
        None,
        10**12,
        line("shifted: store"),
    )
    error = fault(shifted_kernel, (1,), y, x, -(10**12), given_=regions(x=x, y=y), BLOCK=8)
    assert (error.tensor, error.element) == ("x", -(10**12))


def test_an_atomic_out_of_bounds():
    counts, bins = torch.zeros(4), torch.tensor([0, 3, 4, 1, 9])
    error = fault(
        count_kernel, (1,), counts, bins, 5, given_=regions(counts=counts, bins=bins), BLOCK=8
    )
    assert facts(error) == ("fadd", (0, 0, 0), "counts", 2, 5, 2, 4, None, 4, line("count: add"))
    assert "program 0 does an atomic add outside counts" in str(error)
    assert counts.eq(0).all()


def test_a_compare_and_swap_out_of_bounds():
    locks = torch.zeros(8, dtype=torch.int32)[:3]
    error = fault(swap_kernel, (1,), locks, 3, given_=regions(locks=locks))
    assert facts(error) == ("cas", (0, 0, 0), "locks", 1, 1, 0, 3, None, 3, line("swap: cas"))
    assert "1 of 1 lane," in str(error)


@pytest.mark.parametrize(
    ("load", "store", "kind", "tensor"), [((), (0,), "load", "x"), ((0,), (), "store", "y")]
)
def test_a_block_pointer_without_boundary_check(load, store, kind, tensor):
    error = fault(
        block_pointer_kernel,
        (1,),
        x := torch.zeros(12),
        y := torch.zeros(12),
        12,
        8,
        load,
        store,
        8,
        given_=regions(x=x, y=y),
    )
    assert (error.kind, error.tensor, error.lane, error.element, error.count) == (
        kind,
        tensor,
        4,
        12,
        4,
    )
    assert error.line == line(f"block pointer: {kind}")


@pytest.mark.parametrize("first", [0, 1])  # the order of the dimensions
@pytest.mark.parametrize(
    ("load", "store", "kind", "tensor", "row", "column"),
    [
        ((1,), (0, 1), "load", "x", 3, 0),
        ((0, 1), (0,), "store", "y", 2, 5),
        ((), (), "load", "x", 2, 5),
    ],
)
def test_a_block_pointer_that_checks_one_dimension(first, load, store, kind, tensor, row, column):
    x, y = torch.zeros(3, 8)[:, :5], torch.zeros(3, 8)[:, :5]
    error = fault(
        block_pointer_tile_kernel,
        (1,),
        x,
        y,
        3,
        5,
        8,
        1,
        2,
        load,
        store,
        first,
        2,
        8,
        given_=regions(x=x, y=y),
    )
    assert (error.kind, error.tensor, error.row, error.column) == (kind, tensor, row, column)
    assert error.line == line(f"block tile: {kind}")


def test_block_pointers_inside_their_tensors_are_fine():
    x, y = torch.rand(16), torch.zeros(16)
    with checked(regions(x=x, y=y)):
        block_pointer_kernel[(1,)](x, y, 16, 8, (), (), 8)
        block_pointer_tile_kernel[(1,)](x, y, 4, 3, 4, 1, 2, (0, 1), (0, 1), 1, 2, 4)
    assert torch.equal(y.view(4, 4)[2:, :3], x.view(4, 4)[2:, :3])
    assert torch.equal(y[8:].view(2, 4)[:, 3], x[8:].view(2, 4)[:, 3])


@pytest.mark.parametrize(
    ("n_x", "n_y", "kind", "tensor"), [(16, 12, "load", "x"), (12, 16, "store", "y")]
)
def test_a_tensor_descriptor_of_a_larger_tensor(n_x, n_y, kind, tensor):
    x, y = torch.zeros(12), torch.zeros(12)
    error = fault(descriptor_kernel, (1,), x, y, n_x, n_y, 16, given_=regions(x=x, y=y))
    assert (error.kind, error.tensor, error.element) == (kind, tensor, 12)
    assert error.line == line(f"descriptor: {kind}")


def test_a_tile_with_rows_past_M():
    x, y = torch.ones(8, 5), torch.zeros(8, 5)[:3]
    error = fault(
        tile_kernel,
        (2,),
        x,
        y,
        5,
        1,
        5,
        1,
        3,
        5,
        given_=regions(x=x, y=y),
        MASK_ROWS=False,
        ROWS=2,
        BLOCK=8,
    )
    assert facts(error) == ("store", (1, 0, 0), "y", 5, 10, 8, 15, 3, 0, line("tile: store"))
    assert (
        "the first is lane (1, 0): element 15, which is column 0 of row 3, and the last row is 2"
        in str(error)
    )


def test_a_block_that_runs_down_a_column_past_the_last_row():
    x, y = torch.ones(5, 4), torch.zeros(8, 5)[:3]
    # rows of the block are columns of y: N is 4 where y has 3 rows
    error = fault(
        tile_kernel,
        (3,),
        x,
        y,
        4,
        1,
        1,
        5,
        5,
        4,
        given_=regions(x=x, y=y),
        MASK_ROWS=True,
        ROWS=2,
        BLOCK=4,
    )
    assert facts(error) == ("store", (0, 0, 0), "y", 2, 8, 3, 15, 3, 0, line("tile: store"))
    assert "the first is lane (0, 3)" in str(error)


def test_two_names_for_one_memory_are_told_apart_by_the_pointers_name():
    x = torch.ones(64)[:13]
    given_ = [*regions(x=x), *regions(y=x)]
    error = fault(
        copy_kernel,
        (2,),
        x,
        x,
        13,
        given_=given_,
        MASK_LOAD=True,
        MASK_STORE=False,
        SLACK=0,
        BLOCK=8,
    )
    assert (error.kind, error.tensor) == ("store", "y")


def test_a_row_offset_that_overflows_32_bits():
    # no memory is behind these rows: the check comes first, so none is touched
    far = [
        Region("y", 2**44, 4, (3, 5), (2**30, 1)),
        Region("x", x_address := 2**40, 4, (3, 5), (2**30, 1)),
    ]
    y_ptr, x_ptr = launch.pointer(2**44, "fp32"), launch.pointer(x_address, "fp32")

    @triton.jit
    def only_row_two(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
        row = tl.program_id(0) + 2
        cols = tl.arange(0, BLOCK)
        tl.store(y_ptr + row * stride + cols, 1.0, mask=cols < N)  # overflow: store

    with np.errstate(over="ignore"):
        error = fault(
            only_row_two,
            (1,),
            x_ptr,
            y_ptr,
            launch.integer(2**30),
            launch.integer(5),
            given_=far,
            BLOCK=8,
        )
    assert facts(error) == (
        "store",
        (0, 0, 0),
        "y",
        5,
        5,
        0,
        -(2**31),
        -2,
        0,
        line("overflow: store"),
    )
    assert f"element {-(2**31)}, which is {2**31} before the start of y" in str(error)


def test_the_gaps_of_a_column_stride_are_no_elements():
    x = torch.ones(4, 12)[:, ::2]
    y = torch.zeros(4, 6)
    error = fault(rows_kernel, (4,), x, y, 12, 6, 6, given_=regions(x=x, y=y), SLACK=0, BLOCK=8)
    assert facts(error) == ("load", (0, 0, 0), "x", 3, 6, 1, 1, 0, 0, line("rows: load"))
    assert (
        "element 1, which is between columns 0 and 1 of row 0 (x has 4 rows of 6 columns, columns 2"
        " apart)" in str(error)
    )


def test_a_row_that_runs_on_into_the_next_tensor():
    room = torch.zeros(16)
    x, y = room[:8], room[8:]
    error = fault(shifted_kernel, (1,), y, x, 5, given_=regions(x=x, y=y), BLOCK=8)
    # five of the eight lanes are elements of y; the store still goes wrong, at lane 3
    assert facts(error)[:8] == ("store", (0, 0, 0), "x", 5, 8, 3, 8, None)
    assert room.eq(0).all()


def test_fp32_through_a_pointer_to_fp16():
    y = torch.zeros(8, dtype=torch.float16)
    error = fault(as_fp32_kernel, (1,), y, given_=regions(y=y))
    assert facts(error) == ("store", (0, 0, 0), "y", 2, 2, 0, 0, None, 0, line("wide: store"))
    assert "stores 4 bytes a lane in y, whose elements are 2 bytes" in str(error)
    assert y.eq(0).all()


def test_an_address_inside_an_element():
    x, y = torch.ones(8), torch.zeros(1)
    error = fault(half_step_kernel, (1,), x, y, given_=regions(x=x, y=y))
    assert (error.kind, error.tensor, error.element, error.line) == (
        "load",
        "x",
        0,
        line("half: load"),
    )
    assert "2 bytes into element 0" in str(error)


def test_the_line_is_that_of_the_helper_that_stores():
    y = torch.zeros(8)[:5]
    error = fault(with_helper_kernel, (1,), y, 5, given_=regions(y=y), BLOCK=8)
    assert (error.tensor, error.element, error.line) == ("y", 5, line("helper: store"))


def test_memory_the_kernel_was_not_given():
    x, y = torch.ones(8), torch.zeros(8)
    error = fault(shifted_kernel, (1,), x, y, 0, given_=[], BLOCK=8)
    assert (error.kind, error.tensor, error.count, error.row) == ("load", None, 8, None)
    assert "no tensor" in str(error)


def test_an_empty_tensor_has_no_element():
    x, y = torch.ones(8), torch.zeros(0)
    error = fault(shifted_kernel, (1,), x, torch.zeros(8), 0, given_=regions(x=x, y=y), BLOCK=8)
    assert error.kind == "store" and error.count == 8


# --- right kernels --------------------------------------------------------------------------------


def test_wild_addresses_under_a_mask_are_fine():
    x, y = torch.arange(8.0), torch.zeros(8)
    with checked(regions(x=x, y=y)):
        alternating_kernel[(1,)](x, y, 10**12, BLOCK=8)
    assert y.tolist() == [0, 0, 2, 0, 4, 0, 6, 0]


def test_an_access_without_a_live_lane_is_fine():
    x, y = torch.ones(13), torch.zeros(13)
    with checked(regions(x=x, y=y)):
        copy_kernel[(4,)](x, y, 13, MASK_LOAD=True, MASK_STORE=True, SLACK=0, BLOCK=8)
    assert y.eq(1).all()


def test_expanded_input_and_transposed_tensors_are_fine():
    x, y = torch.arange(7.0).expand(5, 7), torch.zeros(7, 5).T
    with checked(regions(x=x, y=y)):
        tile_kernel[(3,)](x, y, *x.stride(), *y.stride(), 5, 7, MASK_ROWS=True, ROWS=2, BLOCK=8)
    assert torch.equal(x, y)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_right_copy_never_faults(data):
    M, N = data.draw(st.integers(1, 6), "M"), data.draw(st.integers(1, 9), "N")

    def drawn(name: str, may_expand: bool) -> torch.Tensor:
        """A matrix of some layout in a wider buffer."""
        column = data.draw(st.integers(1, 3), name + " column stride")
        row = (N - 1) * column + data.draw(st.integers(1, 5), name + " row gap")
        strides = (row, column)
        if data.draw(st.booleans(), name + " transposed"):
            row = data.draw(st.integers(1, 3), name + " row stride")
            strides = (row, (M - 1) * row + data.draw(st.integers(1, 5), name + " column gap"))
        if may_expand and data.draw(st.booleans(), name + " expanded"):
            strides = (0, strides[1])
        return torch.randn(400).as_strided(
            (M, N), strides, data.draw(st.integers(0, 9), name + " start")
        )

    x, y = drawn("x", True), drawn("y", False)
    rows = data.draw(st.sampled_from((1, 2, 4)), "ROWS")
    with checked(regions(x=x, y=y)):
        tile_kernel[(triton.cdiv(M, rows),)](
            x, y, *x.stride(), *y.stride(), M, N, MASK_ROWS=True, ROWS=rows, BLOCK=16
        )
    assert torch.equal(x, y)


# --- membership -----------------------------------------------------------------------------------


def every_address(region: Region) -> set[int]:
    index = np.indices(region.shape).reshape(len(region.shape), -1)
    return {
        region.address + region.itemsize * int(offset)
        for offset in np.array(region.strides, dtype=np.int64) @ index
    }


@settings(max_examples=150, deadline=None)
@example([(3, 50), (2, 3), (3, 2)], 4)  # interleaved columns, rows apart
@example([(2, 5), (2, 3), (2, 2)], 4)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 4, 8]),
)
def test_membership_is_that_of_the_list_of_all_elements(dimensions, itemsize):
    shape, strides = zip(*dimensions, strict=True)
    region = Region("t", 10_000, itemsize, shape, strides)
    around = np.arange(10_000 - 120 * itemsize, 10_000 + 120 * itemsize, dtype=np.int64)
    expected = np.isin(around, sorted(every_address(region)))
    np.testing.assert_array_equal(region.contains(around), expected)
    for address in around[expected][:5]:
        alone = np.array([address])
        assert find_region([region], alone, itemsize) is region
        assert find_region([region], alone, itemsize + 1) is None


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.permutations([0, 1, 2]),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_an_elements_index_is_found(a, b, c, order, flipped):
    packed = np.arange(a * b * c).reshape(a, b, c)
    array = packed.transpose(order)[tuple(slice(None, None, -1 if flip else 1) for flip in flipped)]
    strides = tuple(step // array.itemsize for step in array.strides)
    region = Region("t", 4096, 8, array.shape, strides)
    for index in np.ndindex(array.shape):
        if all(size > 1 for size in array.shape):
            assert region.index(
                sum(i * stride for i, stride in zip(index, strides, strict=True))
            ) == (index, 0)


def test_rows_far_apart_and_windows_of_a_long_signal_are_not_listed():
    far = Region("x", 2**50, 2, (2**20, 2**10), (2**30, 1))
    probes = np.array(
        [
            0,
            1023,
            1024,
            2**30,
            2**30 - 1,
            (2**20 - 1) * 2**30 + 1023,
            (2**20 - 1) * 2**30 + 1024,
            -1,
        ],
        dtype=np.int64,
    )
    assert far.contains(2**50 + 2 * probes).tolist() == [
        True,
        True,
        False,
        True,
        False,
        True,
        False,
        False,
    ]
    windows = Region("x", 0, 4, (10**8, 400), (160, 1))
    assert windows.contains(np.array([0, 4 * 160 * 10**8, 4 * (160 * (10**8 - 1) + 400), 2],
        dtype=np.int64)).tolist() == [
        True, True, False, False,
    ]  # fmt: skip
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert not far.contains(extremes).any()


def test_a_layout_that_cannot_be_checked_is_refused_before_the_kernel():
    tangled = Region("x", 0, 4, (10**5, 10**5), (3, 2))
    with pytest.raises(CourseError, match="x overlaps itself"), checked([tangled]):
        pytest.fail("the block ran")


def test_a_region_wants_one_stride_a_dimension():
    with pytest.raises(ValueError, match="2 sizes and 1 strides"):
        Region("x", 0, 4, (2, 3), (1,))


def test_a_tensor_on_a_device_is_refused():
    with pytest.raises(CourseError, match="w is on meta"):
        Region.of("w", torch.empty(3, device="meta"))


# --- the block itself -----------------------------------------------------------------------------


def overrun(y: torch.Tensor) -> None:
    shifted_kernel[(1,)](torch.ones(8), y, 4, BLOCK=8)


def test_the_check_ends_with_the_block_and_after_a_fault():
    room = torch.zeros(16)
    y = room[:8]
    with pytest.raises(OutOfBounds), checked(regions(y=y)):
        overrun(y)
    with pytest.raises(ZeroDivisionError), checked(regions(y=y)):
        1 / 0  # noqa: B018 - an exception that is not the kernel's
    overrun(y)  # stock: no word, and the neighbour is overwritten
    assert room.tolist() == [0] * 4 + [1] * 8 + [0] * 4


def test_another_error_of_the_kernel_keeps_its_wrapping():
    x = torch.zeros(8)
    with pytest.raises(triton.runtime.errors.InterpreterError), checked(regions(x=x)):
        shifted_kernel[(1,)](x, "no pointer", 0, BLOCK=8)


def test_nested_blocks_each_have_a_say():
    x, y = torch.ones(8), torch.zeros(8)
    with checked(regions(x=x, y=y)):
        with pytest.raises(OutOfBounds) as caught, checked(regions(x=x)):
            shifted_kernel[(1,)](x, y, 0, BLOCK=8)
        shifted_kernel[(1,)](x, y, 0, BLOCK=8)
    assert caught.value.kind == "store" and y.eq(1).all()


def test_a_kernel_in_another_thread_is_not_checked_against_these_tensors():
    x, y = torch.ones(8), torch.zeros(8)
    with checked([]):
        widget = threading.Thread(target=lambda: shifted_kernel[(1,)](x, y, 0, BLOCK=8))
        widget.start()
        widget.join()
    assert y.eq(1).all()


def test_without_a_block_the_results_are_the_same_bits():
    x = torch.randn(4, 33)
    plain, watched = torch.zeros(4, 33), torch.zeros(4, 33)
    rows_kernel[(4,)](x, plain, 33, 33, 33, SLACK=0, BLOCK=64)
    with checked(regions(x=x, y=watched)):
        rows_kernel[(4,)](x, watched, 33, 33, 33, SLACK=0, BLOCK=64)
    assert torch.equal(plain, watched) and torch.equal(plain, x)


def test_raw_addresses_are_enough():
    memory = np.zeros(16, np.float32)
    region = Region("y", memory.ctypes.data + 16, 4, (8,), (1,))
    ones = np.ones(8, np.float32)
    arguments = [launch.pointer(ones.ctypes.data, "fp32"), launch.pointer(region.address, "fp32")]
    given_ = [Region("x", ones.ctypes.data, 4, (8,), (1,)), region]
    with checked(given_):
        launch.launch(shifted_kernel, (1,), [*arguments, launch.integer(0)], {"BLOCK": 8})
    with pytest.raises(OutOfBounds, match="1 past the end of y"), checked(given_):
        launch.launch(shifted_kernel, (1,), [*arguments, launch.integer(1)], {"BLOCK": 8})
    assert memory.tolist() == [0] * 4 + [1] * 8 + [0] * 4


def test_compiled_kernels_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(tl.standard, "sum", "what a compiling Triton has here")
    with pytest.raises(CourseError, match="CPU mode"), checked([]):
        pytest.fail("the block ran")


@triton.jit
def calls_at_kernel(x_ptr, BLOCK: tl.constexpr):
    at(x_ptr, tl.arange(0, BLOCK))  # noqa: F821 - the test below puts it here


def test_a_package_whose_name_begins_like_tritons_holds_kernels(monkeypatch):
    file = str(Path(triton.__file__).parent) + "_kernels/layer.py"
    scope = {"tl": tl}
    exec(compile("def at(ptr, offsets):\n    return tl.load(ptr + offsets)", file, "exec"), scope)
    monkeypatch.setitem(globals(), "at", scope["at"])
    seen = []
    with hooks.observing(lambda access: seen.append(hooks.line_of_kernel())):
        calls_at_kernel[(1,)](torch.ones(4), BLOCK=4)
    assert seen == [(file, 2)]
