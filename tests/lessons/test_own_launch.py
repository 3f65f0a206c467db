"""Launches of a learner's kernel take the order of its parameters from the exercise, and from no
other place."""

from __future__ import annotations

import re
import shutil

import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.kernels.launch import tables
from course_lib.lessons import own_kernels, own_launch
from course_lib.lessons.own_kernels import OwnNorm
from course_lib.lessons.pictures.access_map.forward import forward_map
from course_lib.lessons.pictures.kernel_roofline import model as roofline
from course_lib.lessons.pictures.pass_counter.model import OWN, count_own
from course_lib.norms import reference

KERNELS = sorted({*OWN, *roofline.OWN, *own_kernels.ROLES} - {"14a"})
BEFORE = """    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    M, N, eps,
"""
AFTER = "    rstd_ptr, b_ptr, stride_y, eps, x_ptr, N, y_ptr, M, stride_x, mean_ptr, w_ptr,\n"


@pytest.fixture
def other_order(tmp_path, monkeypatch):
    """The course with another order of the parameters of 08a, and the learner's file, solved.
    Returns the text of the solution."""
    shutil.copytree(paths.SOLUTIONS, tmp_path / "solutions")
    monkeypatch.setattr(paths, "SOLUTIONS", tmp_path / "solutions")
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "exercises"))
    file = f"{catalog.get('08a').file}.py"
    solution = tmp_path / "solutions" / file
    text = solution.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    text = text.replace(BEFORE, AFTER)
    solution.write_text(text, encoding="utf-8")
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / file).write_text(text, encoding="utf-8")
    return text


def test_another_order_of_parameters_is_a_change_of_the_solution_alone(other_order):
    assert (count_own("08a", 300).passes("load"), count_own("08a", 300).passes("store")) == (1, 1)
    assert "x 1 read" in re.sub(r"\s+", " ", forward_map("yours, 08a").picture.alt)
    launch = roofline.make_launch("08a", 4, 100, tables.TileLaunch(2, 128, 4))
    assert [argument for argument in launch.arguments if isinstance(argument, (int, float))] == [
        100,
        1e-5,
        100,
        4,
        100,
    ]
    x = torch.randn(5, 40, device=course_lib.DEVICE)
    y, mean, _ = OwnNorm({"08a": other_order}, {}).launch_forward(x, None, None, 1e-5)
    right = reference.layer_norm(reference.float64(x))
    torch.testing.assert_close(y.cpu().double(), torch.from_numpy(right.y), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        mean.cpu().double(), torch.from_numpy(right.mean), atol=1e-6, rtol=1e-5
    )


@pytest.mark.parametrize("exercise", KERNELS)
def test_each_tensor_of_a_kernel_has_a_shape_and_each_number_a_value(exercise):
    tensors = {
        name: torch.zeros(shape)
        for name, shape in own_launch.list_shapes(exercise, 4, 6, programs=2).items()
    }
    arguments, constants = own_launch.order_arguments(
        exercise, 4, 6, tensors | {"ROWS": 2, "BLOCK": 8, "unused": 1}
    )
    assert sum(isinstance(argument, torch.Tensor) for argument in arguments) == len(tensors) >= 2
    assert constants["BLOCK"] == 8 and ("ROWS" in constants) == own_launch.has_constant(
        exercise, "ROWS"
    )


def test_a_parameter_without_a_value_is_named():
    with pytest.raises(CourseError, match="the kernel of 08a has a parameter `b_ptr`"):
        own_launch.order_arguments("08a", 4, 6, dict.fromkeys(("x", "y", "w", "mean", "rstd")))


def test_the_order_is_that_of_the_unsolved_file_where_there_are_no_solutions():
    text = texts.make_unsolved_text(catalog.get("08a"))
    arguments, _ = own_launch.order_arguments(
        "08a",
        4,
        6,
        {name: name for name in own_launch.list_tensors("08a")} | {"ROWS": 1, "BLOCK": 8},
    )
    positions = [text.index(f"{name}_ptr") for name in arguments if isinstance(name, str)]
    assert positions == sorted(positions)
