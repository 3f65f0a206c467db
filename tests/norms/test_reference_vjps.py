"""The float64 gradients: against PyTorch's autograd, finite differences, and what must hold for
every input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_lib.norms import reference

SHAPES = [(1, 1), (3, 1), (1, 2), (4, 3), (5, 17), (2, 129), (3, 1000)]
NORMS = {"layer_norm": torch.nn.functional.layer_norm, "rms_norm": torch.nn.functional.rms_norm}
VJPS = {"layer_norm": reference.layer_norm_vjp, "rms_norm": reference.rms_norm_vjp}


def case(shape, seed=0, mean=0.0, std=1.0):
    rng = np.random.default_rng(seed)
    x = mean + std * rng.standard_normal(shape)
    return (
        rng.standard_normal(shape),
        x,
        rng.uniform(0.5, 2, shape[1]) * rng.choice([-1, 1], shape[1]),
    )


def by_autograd(kind, dy, x, w, eps):
    x_t, w_t = (torch.tensor(a, requires_grad=True) for a in (x, w))
    b_t = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    arguments = (w_t, b_t, eps) if kind == "layer_norm" else (w_t, eps)
    NORMS[kind](x_t, (x.shape[1],), *arguments).backward(torch.tensor(dy))
    return [t.grad.numpy() for t in ((x_t, w_t, b_t) if kind == "layer_norm" else (x_t, w_t))]


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("mean", "std", "eps"), [(0, 1, 1e-5), (3, 1, 1e-12), (0.5, 0.03, 0.1), (-100, 1, 1e-3)]
)
def test_the_gradients_are_autograds(kind, shape, mean, std, eps):
    dy, x, w = case(shape, mean=mean, std=std)
    for got, want in zip(VJPS[kind](dy, x, w, eps), by_autograd(kind, dy, x, w, eps), strict=True):
        assert got.dtype == np.float64 and got.shape == want.shape
        np.testing.assert_allclose(
            got, want, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(want).max()))
        )


@pytest.mark.parametrize("kind", NORMS)
def test_the_gradients_are_finite_differences(kind):
    dy, x, w = case((3, 5), seed=1, mean=2.0)
    b, eps, h = np.zeros(5), 0.05, 1e-6

    def loss(x, w, b):
        y = (
            reference.layer_norm(x, w, b, eps).y
            if kind == "layer_norm"
            else reference.rms_norm(x, w, eps).y + b
        )
        return (dy * y).sum()

    inputs = [x, w, b][: len(VJPS[kind](dy, x, w, eps))]
    for which, got in enumerate(VJPS[kind](dy, x, w, eps)):
        for index in np.ndindex(inputs[which].shape):
            up, down = ([a.copy() for a in (x, w, b)] for _ in range(2))
            up[which][index] += h
            down[which][index] -= h
            assert got[index] == pytest.approx(
                (loss(*up) - loss(*down)) / (2 * h), rel=1e-6, abs=1e-8
            )


numbers = st.floats(-50, 50, width=32)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from(list(VJPS)),
    a=st.floats(-4, 4),
    eps=st.sampled_from([1e-5, 1e-3, 0.1, 1.0]),
)
def test_linear_in_dy(data, kind, a, eps):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    x, dy, other = (data.draw(arrays(np.float64, shape, elements=numbers)) for _ in range(3))
    w = data.draw(arrays(np.float64, shape[1], elements=numbers))
    parts = zip(
        VJPS[kind](dy, x, w, eps),
        VJPS[kind](other, x, w, eps),
        VJPS[kind](dy + a * other, x, w, eps),
        strict=True,
    )
    for one, two, both in parts:
        np.testing.assert_allclose(both, one + a * two, rtol=1e-9, atol=1e-6 / eps)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), eps=st.sampled_from([1e-5, 1e-3, 0.1, 1.0, 30.0]))
def test_what_a_gradient_can_never_change(data, eps):
    """LayerNorm's dx is orthogonal to 1. Along xhat eps lets a little through: dx . xhat = N c1 eps
    rstd^3, for both norms."""
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 9)))
    x, dy = (data.draw(arrays(np.float64, shape, elements=numbers)) for _ in range(2))
    w = data.draw(arrays(np.float64, shape[1], elements=numbers))
    for kind, forward in (("layer_norm", reference.layer_norm), ("rms_norm", reference.rms_norm)):
        result = forward(x, eps=eps)
        xhat, dx = result.y, VJPS[kind](dy, x, w, eps).dx
        slack = 1e-10 * (np.abs(w * dy).sum(axis=1) + 1) * result.rstd * shape[1]
        if kind == "layer_norm":
            assert (np.abs(dx.sum(axis=1)) <= slack).all()
        leak = shape[1] * (xhat * w * dy).mean(axis=1) * eps * result.rstd**3
        assert (np.abs((dx * xhat).sum(axis=1) - leak) <= slack * shape[1]).all()


def test_without_eps_two_columns_leave_nothing_and_rms_norm_keeps_the_mean():
    dy, x, w = case((4, 2), seed=3)
    assert np.abs(reference.layer_norm_vjp(dy, x, w, eps=0.0).dx).max() < 1e-12
    assert np.abs(reference.rms_norm_vjp(dy, x, w, eps=0.0).dx).max() > 1e-3
    assert np.abs(reference.rms_norm_vjp(dy, x, w).dx.sum(axis=1)).max() > 1e-3


@pytest.mark.parametrize("kind", NORMS)
def test_no_weight_is_a_weight_of_ones(kind):
    dy, x, _ = case((3, 7), seed=4)
    for without, ones in zip(VJPS[kind](dy, x), VJPS[kind](dy, x, np.ones(7)), strict=True):
        np.testing.assert_array_equal(without, ones)


def test_halves_lists_and_tensors_are_taken_exactly():
    dy, x, w = case((2, 5), seed=5)
    dy, x, w = (torch.tensor(a).half() for a in (dy, x, w))
    for one, two in zip(
        reference.layer_norm_vjp(dy, x, w),
        reference.layer_norm_vjp(dy.tolist(), x.tolist(), w.tolist()),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_a_nan_stays_in_its_row_of_dx():
    dy, x, w = case((3, 6), seed=6)
    x[1, 2] = np.nan
    for vjp in VJPS.values():
        dx = vjp(dy, x, w).dx
        assert np.isnan(dx[1]).all() and np.isfinite(dx[[0, 2]]).all()


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize(
    ("dy", "x", "w", "words"),
    [
        ((3, 4), (4, 3), None, "must have the shape of x"),
        ((3,), (1, 3), None, "must have the shape of x"),
        ((3,), (3,), None, "Flatten the leading dimensions"),
        ((2, 0), (2, 0), None, "N >= 1"),
        ((2, 3), (2, 3), (2,), "it must be \\(3,\\)"),
    ],
)
def test_what_does_not_fit_is_said(kind, dy, x, w, words):
    with pytest.raises(ValueError, match=words):
        VJPS[kind](np.ones(dy), np.ones(x), None if w is None else np.ones(w))


def test_the_published_dw_is_wrong_and_ours_is_right():
    """The derivation notes print dL/dw_i = sum over a of dy_a x_i. No reading of it is the
    gradient; the sum of dy * xhat is."""
    dy, x, w = case((4, 6), seed=7, mean=1.0)
    _, true, _ = by_autograd("layer_norm", dy, x, w, 1e-5)
    np.testing.assert_allclose(reference.layer_norm_vjp(dy, x, w).dw, true, rtol=1e-10)
    to_the_letter, kindly = (dy.sum(axis=1, keepdims=True) * x).sum(axis=0), (dy * x).sum(axis=0)
    for published in (to_the_letter, kindly):
        assert np.abs(published - true).max() > 0.5
    # rows that are normalised already hide the missing hat, and a single column the missing index
    normal = reference.layer_norm(x, eps=0.0).y
    np.testing.assert_allclose(
        (dy * normal).sum(axis=0), by_autograd("layer_norm", dy, normal, w, 0.0)[1], rtol=1e-9
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (1e4, 1), (-1e4, 30)])
@pytest.mark.parametrize("forbidden", [False, True])
def test_the_cross_entropy_is_pytorchs(shape, mean, std, forbidden):
    dy, x, _ = case(shape, mean=mean, std=std)
    dloss, target = dy[:, 0], np.arange(len(x)) * 7 % shape[1]
    if forbidden:
        x[:, 1::3] = -np.inf
        target -= target % 3 == 1
    logits = torch.tensor(x, requires_grad=True)
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor(target), reduction="none")
    losses.backward(torch.tensor(dloss))
    got, dx = reference.cross_entropy(x, target), reference.cross_entropy_vjp(dloss, x, target)
    np.testing.assert_allclose(got.loss, losses.detach().numpy(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got.lse, torch.logsumexp(logits, dim=1).detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(dx, logits.grad.numpy(), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(dx.sum(axis=1), 0, atol=1e-9)
