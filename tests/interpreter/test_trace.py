"""The tracer: each access once, named, in element offsets, with the bytes that the kernel asks
for."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base.errors import CourseError
from course_lib.interpreter.bounds import OutOfBounds, Region, checked
from course_lib.interpreter.trace import tracing
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: the interpreter is not in use"
)
HERE = str(Path(__file__).resolve())


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * stride, mask=mask)  # scale: load
    tl.store(y_ptr + offsets, 2 * x, mask=mask)  # scale: store


@triton.jit
def total_kernel(x_ptr, total_ptr, lock_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(total_ptr, tl.sum(x))
    tl.atomic_xchg(lock_ptr, 1)
    tl.debug_barrier()


def line(marker: str) -> int:
    (number,) = [
        n
        for n, text in enumerate(Path(HERE).read_text().splitlines(), 1)
        if text.endswith("# " + marker)
    ]
    return number


def regions(**tensors) -> list[Region]:
    return [Region.of(name, tensor) for name, tensor in tensors.items()]


def test_each_access_is_recorded_once_with_its_lanes():
    x, y = torch.arange(10, dtype=torch.float16)[::2], torch.zeros(5, dtype=torch.float16)
    with tracing(regions(x=x, y=y)) as trace:
        scale_kernel[(2,)](x, y, 5, 2, BLOCK=4)
    assert y.tolist() == [0, 4, 8, 12, 16]
    seen = [
        (e.program[0], e.kind, e.tensor, e.offsets.tolist(), e.masked, e.bytes, e.line)
        for e in trace.events
    ]
    load, store = line("scale: load"), line("scale: store")
    assert seen == [
        (0, "load", "x", [0, 2, 4, 6], 0, 8, load),
        (0, "store", "y", [0, 1, 2, 3], 0, 8, store),
        (1, "load", "x", [8], 3, 2, load),
        (1, "store", "y", [4], 3, 2, store),
    ]
    assert all(e.file == HERE and e.offsets.dtype == "int64" for e in trace.events)


def test_bytes_by_tensor_and_kind():
    x, total, lock = torch.ones(16), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    with tracing(regions(x=x, total=total, lock=lock)) as trace:
        total_kernel[(4,)](x, total, lock, BLOCK=4)
    assert total.item() == 16
    assert trace.bytes() == 64 + 16 + 16
    assert trace.bytes("x") == trace.bytes(kind="load") == 64
    assert trace.bytes("total", "fadd") == 16 and trace.bytes("lock", "xchg") == 16
    assert trace.bytes(kind="atomic") == 32
    assert trace.bytes(kind="store") == trace.bytes("x", "store") == 0
    assert [e.kind for e in trace.events[:4]] == ["load", "fadd", "xchg", "barrier"]
    assert trace.events[3].lanes == trace.events[3].bytes == 0 and trace.events[3].tensor is None


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 40),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    st.sampled_from([8, 16, 32]),
)
def test_layer_norm_reads_x_three_times_in_blocks_and_once_resident(M, N, dtype, block):
    x = torch.randn(M, N).to(dtype)
    y = torch.empty(M, N, dtype=dtype)
    w = torch.randn(N)
    b = torch.randn(N)
    mean, rstd = torch.empty(M), torch.empty(M)
    named = regions(x=x, y=y, w=w, b=b, mean=mean, rstd=rstd)
    present = {"HAS_W": True, "HAS_B": True}
    with checked(named), tracing(named) as blocked:
        layer_norm_blocked_kernel[(M,)](
            x, y, w, b, mean, rstd, N, 1, N, 1, N, 1e-5, **present, BLOCK=block
        )
    with checked(named), tracing(named) as resident:
        layer_norm_resident_kernel[(triton.cdiv(M, 2),)](
            x,
            y,
            w,
            b,
            mean,
            rstd,
            N,
            1,
            N,
            1,
            M,
            N,
            1e-5,
            **present,
            ROWS=2,
            BLOCK=triton.next_power_of_2(N),
        )
    assert blocked.passes("x") == 3 and resident.passes("x") == 1
    for trace in (blocked, resident):
        assert (
            trace.passes("y")
            == trace.passes("y", "store")
            == trace.passes("mean")
            == trace.passes("rstd")
            == 1
        )
    assert blocked.passes("w") == M and resident.passes("w") == triton.cdiv(M, 2)


def test_a_tensor_in_place_and_an_expanded_one():
    x = torch.ones(8)
    with tracing(regions(x=x)) as trace:
        scale_kernel[(1,)](x, x, 8, 1, BLOCK=8)
    assert (trace.passes("x"), trace.passes("x", "load"), trace.passes("x", "store")) == (2, 1, 1)
    one, y = torch.ones(1).expand(8), torch.zeros(8)
    with tracing(regions(one=one, y=y)) as trace:
        scale_kernel[(1,)](one, y, 8, 0, BLOCK=8)
    assert trace.passes("one") == 1  # eight elements by its shape, though they share one place
    assert trace.events[0].offsets.tolist() == [0] * 8


def test_a_reversed_tensor_has_negative_offsets():
    x, y = torch.arange(4.0), torch.zeros(4)
    reversed_x = Region("x", x.data_ptr() + 12, 4, (4,), (-1,))
    with checked([reversed_x, Region.of("y", y)]), tracing([reversed_x]) as trace:
        scale_kernel[(1,)](x[3:], y, 4, -1, BLOCK=4)
    assert y.tolist() == [6, 4, 2, 0]
    assert trace.events[0].offsets.tolist() == [0, -1, -2, -3]


def test_memory_that_was_not_named_is_traced_by_address():
    x, y = torch.ones(4), torch.zeros(4)
    with tracing(regions(x=x)) as trace:
        scale_kernel[(1,)](x, y, 4, 1, BLOCK=4)
    store = trace.events[1]
    assert store.tensor is None and store.offsets.tolist() == [
        y.data_ptr() + 4 * k for k in range(4)
    ]
    assert trace.bytes() == 32 and trace.bytes("x") == 16


def test_a_fault_is_traced_by_the_observer_that_came_first():
    x, y = torch.ones(16), torch.zeros(16)[:5]
    named = regions(x=x, y=y)
    with pytest.raises(OutOfBounds), checked(named), tracing(named) as inner:
        scale_kernel[(1,)](x, y, 8, 1, BLOCK=8)
    assert [e.kind for e in inner.events] == ["load"]
    with tracing(named) as outer, pytest.raises(OutOfBounds), checked(named):
        scale_kernel[(1,)](x, y, 8, 1, BLOCK=8)
    assert [(e.kind, e.tensor) for e in outer.events] == [("load", "x"), ("store", None)]


def test_names_that_cannot_be_told_apart_or_are_not_there():
    x, y = torch.ones(4), torch.zeros(0)
    with (
        pytest.raises(ValueError, match="one name"),
        tracing([Region.of("x", x), Region.of("x", y)]),
    ):
        pytest.fail("the block ran")
    with tracing(regions(x=x, y=y)) as trace:
        pass
    assert trace.passes("x") == trace.passes("y") == 0 and trace.events == []
    with pytest.raises(ValueError, match="no tensor 'z' was traced; there are x, y"):
        trace.passes("z")
    with pytest.raises(ValueError, match="no tensor 'z'"):
        trace.bytes("z")


def test_the_trace_ends_with_the_block_and_keeps_to_its_thread():
    x, y = torch.ones(4), torch.zeros(4)
    with pytest.raises(ZeroDivisionError), tracing(regions(x=x, y=y)) as trace:
        widget = threading.Thread(target=lambda: scale_kernel[(1,)](x, y, 4, 1, BLOCK=4))
        widget.start()
        widget.join()
        1 / 0  # noqa: B018
    scale_kernel[(1,)](x, y, 4, 1, BLOCK=4)
    assert y.eq(2).all() and trace.events == []


def test_compiled_kernels_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(tl.standard, "sum", "what a compiling Triton has here")
    with pytest.raises(CourseError, match="only be traced in CPU mode"), tracing([]):
        pytest.fail("the block ran")


def test_sixty_four_programs_of_1024_lanes_take_little():
    x, y = torch.ones(64 * 1024), torch.zeros(64 * 1024)
    began = time.process_time()
    with checked(regions(x=x, y=y)), tracing(regions(x=x, y=y)) as trace:
        scale_kernel[(64,)](x, y, 64 * 1024, 1, BLOCK=1024)
    took = time.process_time() - began
    assert trace.passes("x") == trace.passes("y") == 1 and len(trace.events) == 128
    assert took < 0.5
