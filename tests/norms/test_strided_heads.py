"""Rows that are no matrix in memory, such as the heads of q in a tensor that has k and v as well:
the bits of a contiguous copy, and no copy is made."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.kernels.launch import operands
from course_lib.norms import functional

DEVICE = course_lib.DEVICE
B, S, H = 2, 5, 3
NORMS = ("layer_norm", "rms_norm")


def make(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(DEVICE)


def transpose(D, dtype, seed):
    return make(B, H, S, D, dtype=dtype, seed=seed).transpose(1, 2)


LAYOUTS = {
    "contiguous": lambda D, dtype, seed: make(B, S, H, D, dtype=dtype, seed=seed),
    "q of qkv": lambda D, dtype, seed: make(B, S, 3 * H, D, dtype=dtype, seed=seed)[:, :, :H],
    "k of qkv": lambda D, dtype, seed: make(B, S, 3 * H, D, dtype=dtype, seed=seed)[:, :, H:-H],
    "transposed": transpose,
    "other columns": lambda D, dtype, seed: transpose(2 * D, dtype, seed)[..., ::2],
    "expanded": lambda D, dtype, seed: make(B, 1, H, D, dtype=dtype, seed=seed).expand(B, S, H, D),
    "every second token": lambda D, dtype, seed: make(B, 2 * S, H, D, dtype=dtype, seed=seed)[
        :, ::2
    ],
}


def run(name, x, dy, **options):
    """y, dx and the gradients of the parameters."""
    D = x.shape[-1]
    x = x.detach().requires_grad_()
    parameters = [make(D, seed=seed).requires_grad_() for seed in (1, 2)][: 1 + ("layer" in name)]
    y = getattr(functional, name)(x, (D,), *parameters, **options)
    gradients = torch.autograd.grad(y, (x, *parameters), dy)
    assert y.shape == x.shape and y.is_contiguous() and gradients[0].is_contiguous()
    return y, *gradients


def find_copies(name, x, dy, **options):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run(name, x, dy, **options)
    return [event for event in profile.events() if event.name == "aten::clone"]


@pytest.mark.parametrize(
    ("layout", "dy_layout"),
    [
        ("contiguous", "transposed"),
        ("q of qkv", "transposed"),
        ("k of qkv", "expanded"),
        ("transposed", "contiguous"),
        *((layout, "q of qkv") for layout in list(LAYOUTS)[4:]),
    ],
)
@pytest.mark.parametrize("name", NORMS)
def test_heads_have_the_bits_of_a_contiguous_copy_without_a_copy(name, layout, dy_layout):
    # 72 columns of fp16 are whole vectors, but no multiple of 16
    for D, dtype in ((2, torch.float32), (72, torch.float16)):
        x, dy = LAYOUTS[layout](D, dtype, 3), LAYOUTS[dy_layout](D, dtype, 4)
        want = run(name, x.contiguous(), dy.contiguous())
        for got, expected in zip(run(name, x, dy), want, strict=True):
            assert torch.equal(got, expected)
    assert not find_copies(name, x, dy)


def test_what_no_kernel_reads_in_place_is_copied():
    """Long rows, and rows of four dimensions that do not follow each other."""
    long = make(B, H, S, 520).transpose(1, 2)
    many = make(2, 3, 4, 5, 8).permute(3, 1, 0, 2, 4)
    for x in (long, many):
        assert find_copies("rms_norm", x, make(*x.shape))
        for got, expected in zip(
            run("rms_norm", x, make(*x.shape)),
            run("rms_norm", x.contiguous(), make(*x.shape)),
            strict=True,
        ):
            assert torch.equal(got, expected)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.integers(1, 9),
)
def test_rows_of_any_strides_are_found(sizes, random, D):
    """A view where at most three dimensions remain, else a copy: the same rows in the same
    order."""
    order = random.sample(range(len(sizes)), len(sizes))
    base = make(*(size * random.choice([1, 2]) for size in sizes), D)
    x = base[tuple(slice(0, size) for size in sizes)].permute(*order, len(sizes))
    rows = operands.view_rows(x, scattered=True)
    assert torch.equal(rows.reshape(-1, D), x.reshape(-1, D))
    assert rows.data_ptr() == x.data_ptr() or sum(size > 1 for size in sizes) > 3
    (first, column), numbers = operands.strides(rows), torch.arange(x.numel() // D)
    if type(first) is tuple:
        inner, middle, *steps = first
        levels = numbers % inner, numbers // inner % middle, numbers // (inner * middle)
        offsets = sum(level * step for level, step in zip(levels, steps, strict=True))
    else:
        offsets = numbers * first
    flat = torch.as_strided(
        rows, (rows.untyped_storage().nbytes() // 4,), (1,), 0
    )  # the whole storage
    at = rows.storage_offset() + offsets[:, None] + column * torch.arange(D)
    assert torch.equal(flat[at.to(DEVICE)], x.reshape(-1, D))


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMS)
def test_a_compiled_call_and_a_second_derivative_take_heads_too(name):
    x, dy = (LAYOUTS["q of qkv"](8, torch.float64, seed) for seed in (3, 4))
    compiled = torch.compile(
        lambda x: getattr(functional, name)(x * 1, (8,)), fullgraph=True, backend="aot_eager"
    )
    want = getattr(functional, name)(x.contiguous(), (8,))
    assert torch.equal(compiled(x), want)
    leaf = x.detach().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda x: getattr(functional, name)(x, (8,), weight_offset=1.0),
        (leaf,),
        (dy.clone().requires_grad_(),),
        fast_mode=True,
    )
