"""Lesson 14's slips: the norm without one is PyTorch's, and each of the page's three harms the
gradient of x and nothing else."""

from __future__ import annotations

import pytest
import torch

from course_lib.lessons.lesson14.broken_norms import norm_with

SLIPS = {
    "none": {},
    "wrong sign of c1": {"dx": lambda wdy, xhat, c1, c2, rstd: (wdy + xhat * c1 - c2) * rstd},
    "c1 and c2 left out": {"dx": lambda wdy, xhat, c1, c2, rstd: wdy * rstd},
    "w left out": {"w_in_dx": False},
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_in_dx_alone(slip):
    torch.manual_seed(0)
    x, g = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    found = []
    for make in (norm_with(**SLIPS[slip]), torch.nn.LayerNorm):
        norm, leaf = make(8), x.clone().requires_grad_()
        with torch.no_grad():
            norm.weight.copy_(torch.linspace(0.5, 2, 8))
        y = norm(leaf)
        found.append((y, *torch.autograd.grad(y, (norm.weight, norm.bias, leaf), g)))
    alike = [torch.allclose(ours, theirs, atol=1e-5) for ours, theirs in zip(*found, strict=True)]
    assert alike == [True, True, True, slip == "none"]
