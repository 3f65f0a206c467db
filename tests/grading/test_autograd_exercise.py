"""Exercise 14a's own machinery: what its functions may use, what its launchers read, and what
reaches a learner in words.

The errata of lesson 14 are held here, too: each shipped bug, as a wrong solution, fails with its
cause.
"""

from __future__ import annotations

import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import mutants
from course_lib.exercises.ex14a_wire_it_up.cases import BACKWARD, FORWARD
from course_lib.grading.check import check
from course_lib.grading.plans import make_plans
from course_lib.norms.launchers import launch_backward, launch_forward

DEVICE = course_lib.DEVICE
EXERCISE = catalog.get("14a")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_the_launchers_are_layer_norm_on_rows(dtype):
    generator = torch.Generator().manual_seed(0)
    x, dy = ((torch.randn(5, 9, generator=generator) + 1).to(dtype).to(DEVICE) for _ in range(2))
    w, b = (torch.randn(9, generator=generator).to(DEVICE) for _ in range(2))
    leaves = [t.double().requires_grad_() for t in (x, w, b)]
    want = torch.nn.functional.layer_norm(leaves[0], (9,), *leaves[1:], 1e-3)
    gradients = torch.autograd.grad(want, leaves, dy.double())
    y, mean, rstd = launch_forward(x, w, b, 1e-3)
    dx, dw, db = launch_backward(dy, x, w, mean, rstd)
    limit = 5e-3 if dtype == torch.float16 else 1e-4
    for got, expected in zip((y, dx, dw, db), (want, *gradients), strict=True):
        assert torch.allclose(got.double(), expected, rtol=limit, atol=limit)
    assert y.dtype == dx.dtype == dtype and dw.dtype == db.dtype == mean.dtype == (
        torch.float64 if dtype == torch.float64 else torch.float32
    )


def test_the_launchers_read_rows_from_their_start_and_take_no_other_shape():
    x = torch.arange(12.0, device=DEVICE).view(4, 3)
    packed = launch_forward(x, None, None, 1e-5)[1]
    transposed = launch_forward(x.t(), None, None, 1e-5)[1]
    assert packed.tolist() == [1, 4, 7, 10]
    # rows of four from 0, 1 and 2 on: what such a kernel would read
    assert transposed.tolist() == [1.5, 2.5, 3.5]
    sliced = launch_forward(x[:, :2], None, None, 1e-5)[1]
    assert sliced.tolist() == [0.5, 3.5, 6.5, 9.5]
    one = torch.ones(1, device=DEVICE).expand(4, 3)
    assert launch_backward(one, x, None, packed, torch.ones_like(packed))[2].isnan().any()
    with pytest.raises(ValueError, match="Flatten the leading dimensions"):
        launch_forward(x.view(2, 2, 3), None, None, 1e-5)


def test_every_case_has_its_own_name_and_every_layout_is_there():
    for battery in (FORWARD, BACKWARD):
        assert len({case.name for case in battery}) == len(battery) and all(
            case.why for case in battery
        )
    strides = {case.layout for case in BACKWARD}
    assert strides >= {
        "packed",
        "dy expanded",
        "dy transposed",
        "dy permuted",
        "x sliced",
        "x transposed",
    }
    assert {case.then for case in BACKWARD} == {"", "residual", "twice", "change", "second"}
    assert {p.entry_point for p in make_plans(EXERCISE)} == {"forward", "backward"}


# what shipped, as an edit of the solution -> the cause that is named
SHIPPED = {
    "dw_not_returned": "gradient_missing",  # unsloth #4533
    "dx_written_over_dy": "dy_overwritten",  # Liger-Kernel #1305
    "strides_of_dy_ignored": "stride_ignored",  # FlagGems PR 1082, unsloth PR 10617
    "dy_ignored": "dy_ignored",  # mojo-gpu-puzzles p22
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_bug_that_shipped_fails_with_its_cause_whatever_the_seed(name, tmp_path):
    (entry,) = [
        entry
        for exercise, entry in mutants.list_mutants()
        if exercise.id == "14a" and entry["id"] == name
    ]
    file = tmp_path / "mutant.py"
    file.write_text(mutants.make_text(EXERCISE, entry))
    assert check(EXERCISE, file, seed=7).cause == SHIPPED[name]


def test_a_learners_function_is_usable_as_it_stands():
    """The class at the end of the file: what the lesson tells people to call."""
    namespace: dict = {}
    exec(compile((paths.SOLUTIONS / "ex14a_wire_it_up.py").read_text(), "ex14a", "exec"), namespace)
    x, w, b = (
        torch.randn(shape, dtype=torch.float64, device=DEVICE, requires_grad=True)
        for shape in ((2, 2, 3), (3,), (3,))
    )
    assert torch.autograd.gradcheck(
        lambda *a: namespace["Norm"].apply(*a, 1e-3), (x, w, b), fast_mode=True
    )


def test_a_second_derivative_is_wrong_refused_or_right_and_another_mistake_is_named_first(tmp_path):
    right = (paths.SOLUTIONS / "ex14a_wire_it_up.py").read_text()
    twice = right.replace("@once_differentiable\n", "")
    own = twice.replace(
        "    needs = ",
        "    if torch.is_grad_enabled():\n        raise NotImplementedError('once only')\n   "
        " needs = ",
    )
    strides = twice.replace("dy.reshape(rows.shape).contiguous()", "dy.reshape(rows.shape)")
    for text, cause in (
        (twice, "second_derivative_wrong"),
        (own, "none"),
        (strides, "stride_ignored"),
    ):
        file = tmp_path / "solution.py"
        file.write_text(text)
        assert check(EXERCISE, file).cause == cause
