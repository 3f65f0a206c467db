"""The language is patched once a launch, whatever the launch calls, and is as it was afterwards."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import course_lib

pytestmark = pytest.mark.skipif(course_lib.MODE != "cpu", reason="needs the interpreter")


@triton.jit
def add_twice(a, b):
    return a + b + tl.sum(b, axis=0)


@triton.jit
def summing_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(y_ptr + row, tl.sum(add_twice(x, x), axis=0) + tl.max(x, axis=0))


@triton.jit
def failing_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))
    tl.static_assert(BLOCK == 0, "on purpose")


def launch(rows: int) -> torch.Tensor:
    x, y = torch.arange(rows * 8, dtype=torch.float32).reshape(rows, 8), torch.empty(rows)
    summing_kernel[(rows,)](x, y, BLOCK=8)
    torch.testing.assert_close(y, 10 * x.sum(dim=1) + x.amax(dim=1))
    return y


@pytest.fixture
def patches(monkeypatch) -> list[object]:
    from triton.runtime import interpreter

    made: list[object] = []
    stock = interpreter._patch_builtin

    def count(package, *rest):
        made.append(package)
        return stock(package, *rest)

    monkeypatch.setattr(interpreter, "_patch_builtin", count)
    return made


def test_the_language_is_searched_once_a_process(patches):
    launch(2)  # the first one rewrites the helpers, and they then name more of the language
    launch(2)
    patches.clear()
    for rows in (1, 20):
        launch(rows)
    assert not patches


def test_what_somebody_else_changed_is_searched_again(patches, monkeypatch):
    launch(2)
    patches.clear()
    other = tl.core.builtin(lambda *rest, _semantic=None: None)
    monkeypatch.setattr(tl, "load", other)
    monkeypatch.setattr(tl, "store", tl.core.builtin(lambda *rest, _semantic=None: None))
    with pytest.raises(Exception, match="NoneType"):
        launch(2)
    assert patches and tl.load is other


def test_after_a_launch_the_language_is_as_it_was():
    before = (
        tl.load,
        tl.zeros,
        tl.static_range,
        tl.tensor.__index__ if hasattr(tl.tensor, "__index__") else None,
    )
    launch(3)
    assert (tl.load, tl.zeros, tl.static_range) == before[:3]
    with pytest.raises(Exception, match="on purpose"):
        failing_kernel[(1,)](torch.zeros(8), torch.zeros(1), BLOCK=8)
    assert (tl.load, tl.zeros, tl.static_range) == before[:3]
    launch(3)


def test_a_helper_that_is_called_outside_of_a_launch_changes_nothing_for_the_next():
    from triton.runtime import interpreter

    interpreter._patch_lang(tl.sum.fn)
    launch(2)
    kept = interpreter._patch_lang(summing_kernel.fn)
    interpreter._patch_lang(tl.sum.fn)
    kept.restore()
    launch(2)


def test_a_launch_inside_a_launch_leaves_the_outer_one_its_language():
    from triton.runtime import interpreter

    outer = interpreter._patch_lang(summing_kernel.fn)
    launch(2)
    inner = interpreter._patch_lang(tl.sum.fn)
    inner.restore()
    launch(2)
    outer.restore()
    launch(2)
