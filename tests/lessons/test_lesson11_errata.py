"""The erratum of lesson 11: one stride for x, dy and dx, as the Triton tutorial has it. Theirs
wrong, ours right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import course_lib
from course_lib.base import paths
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.norm_backward import norm_dx_kernel
from course_lib.norms import reference

DEVICE = course_lib.DEVICE
LESSON = (paths.NOTEBOOK_SOURCES / "11_dx.py").read_text(encoding="utf-8")
M, N, BLOCK = 6, 13, 16
NAN = float("nan")


@triton.jit
def one_stride_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, stride, N, BLOCK: tl.constexpr
):
    """The tutorial's addressing with our arithmetic: every matrix by x's row stride, columns next
    to one another."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0)
    wdy = tl.load(w_ptr + cols, mask=mask, other=0.0) * dy
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - mean) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def strided(
    rows: int, columns: int, strides: tuple[int, int], values: np.ndarray | float
) -> torch.Tensor:
    """A tensor with these strides, NaN in all the memory that is not its own, and enough of it."""
    memory = torch.full((1024,), NAN, device=DEVICE)
    view = memory.as_strided((rows, columns), strides)
    if strides == (0, 0):
        memory[0] = values
    else:
        view.copy_(torch.as_tensor(values))
    return view


@pytest.fixture
def numbers():
    rng = np.random.default_rng(8)
    return {
        "x": 3 + rng.standard_normal((M, N)),
        "dy": rng.normal(0.5, size=(M, N)),
        "w": rng.uniform(0.5, 2.0, N),
    }


# strides of dy and of x, and how many rows the single stride gets right
LAYOUTS = {
    "packed": ((N, 1), (N, 1), M),
    "dy expanded": ((0, 0), (N, 1), 0),
    "dy transposed": ((1, M), (N, 1), 0),
    "dy a slice": ((N + 4, 1), (N, 1), 1),
    "x a slice": ((N, 1), (N + 4, 1), 1),
}


def run(layout: str, numbers: dict, theirs: bool) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    """dx, what it should be, and the memory behind dx."""
    of_dy, of_x, _ = LAYOUTS[layout]
    dy = strided(
        M, N, of_dy, 1.25 if of_dy == (0, 0) else torch.tensor(numbers["dy"], dtype=torch.float32)
    )
    x = strided(M, N, of_x, torch.tensor(numbers["x"], dtype=torch.float32))
    w = torch.tensor(numbers["w"], dtype=torch.float32, device=DEVICE)
    forward = reference.layer_norm(x, w)
    mean, rstd = (
        torch.tensor(values, dtype=torch.float32, device=DEVICE)
        for values in (forward.mean, forward.rstd)
    )
    buffer = torch.full((512,), 7.0, device=DEVICE)
    dx = buffer[: M * N].view(M, N)
    if theirs:
        one_stride_kernel[(M,)](dy, x, w, mean, rstd, dx, x.stride(0), N, BLOCK=BLOCK)
    else:
        norm_dx_kernel[(triton.cdiv(M, 4),)](
            dy,
            x,
            w,
            mean,
            rstd,
            dx,
            *dy.stride(),
            *x.stride(),
            dx.stride(0),
            M,
            N,
            CENTRED=True,
            HAS_W=True,
            ROWS=4,
            BLOCK=BLOCK,
        )
    return reference.float64(dx), reference.layer_norm_vjp(dy, x, w).dx, buffer[M * N :]


def right_rows(dx: np.ndarray, want: np.ndarray) -> int:
    return int((np.abs(dx - want) < 1e-5).all(axis=1).sum())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_stride_is_wrong_as_soon_as_one_matrix_is_not_packed_like_x(layout, numbers):
    dx, want, behind = run(layout, numbers, theirs=True)
    assert right_rows(dx, want) == LAYOUTS[layout][2]
    assert bool((behind == 7).all()) == (layout != "x a slice")  # there dx is written past its end


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stride_for_each_matrix_is_right(layout, numbers):
    dx, want, behind = run(layout, numbers, theirs=False)
    assert right_rows(dx, want) == M and bool((behind == 7).all())


def test_autograd_really_sends_such_a_dy_and_the_whole_backward_pass_takes_it(numbers):
    x = torch.tensor(numbers["x"], dtype=torch.float32, device=DEVICE)
    leaf, sent = x.clone().requires_grad_(), []
    y = leaf * 1
    y.register_hook(sent.append)
    y.sum().backward()
    assert sent[0].stride() == (0, 0) and sent[0].shape == (M, N)
    w = torch.tensor(numbers["w"], dtype=torch.float32, device=DEVICE)
    forward = reference.layer_norm(x, w)
    mean, rstd = (
        torch.tensor(values, dtype=torch.float32, device=DEVICE)
        for values in (forward.mean, forward.rstd)
    )
    dx = layer_norm_backward(sent[0], x, w, mean, rstd)[0]
    np.testing.assert_allclose(
        reference.float64(dx), reference.layer_norm_vjp(sent[0], x, w).dx, atol=1e-5
    )


def test_the_lesson_marks_it():
    assert LESSON.count("> **ERRATUM** (") == 1
    assert "Its backward kernel has one `stride`, that of `x`" in LESSON
