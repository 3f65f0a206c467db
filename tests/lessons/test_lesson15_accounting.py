"""Exercise 15a is graded by numbers that a trace of the kernels counts, and the kernels compute
what they are named for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base.errors import CourseError
from course_lib.exercises.ex15a_bytes_asked.cases import ITEMSIZE, PARTS, add_up, list_terms
from course_lib.grading.cases.case import Case, SharedCase
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel
from course_lib.lessons.lesson15 import accounting
from course_lib.lessons.pictures.access_map.run import record
from course_lib.norms import reference


def count_as_traced(name: str, case: Case) -> tuple[int, int]:
    sizes = {"ROWS": case.rows} if name == "resident_forward" else {}
    if isinstance(case, SharedCase):
        sizes = {"rows_a_chunk": case.chunk, "BLOCK_N": case.block}
    return accounting.count_bytes(name, case.M, case.N, ITEMSIZE[case.dtype], **sizes)


def count_as_graded(name: str, case: Case) -> tuple[int, int]:
    terms = list_terms(name, case)
    return add_up(terms, "read"), add_up(terms, "written")


@pytest.mark.parametrize("name", PARTS)
def test_every_case_expects_what_a_trace_counts(name):
    for case in PARTS[name].battery:
        assert count_as_graded(name, case) == count_as_traced(name, case), case.describe()


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(sorted(PARTS)), M=st.integers(1, 12), N=st.integers(1, 150),
    rows=st.sampled_from([1, 2, 4, 8]),
    chunk=st.integers(1, 13), dtype=st.sampled_from(sorted(ITEMSIZE)),
)  # fmt: skip
def test_any_shape_expects_what_a_trace_counts(name, M, N, rows, chunk, dtype):
    shared = name == "two_stage_backward"
    rows = rows if name == "resident_forward" else 1
    case = (
        SharedCase("any", M, N, 32, "", dtype=dtype, chunk=chunk)
        if shared
        else Case("any", M, N, 0, "", dtype=dtype, rows=rows)
    )
    assert count_as_graded(name, case) == count_as_traced(name, case)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (layer_norm_blocked_kernel, "blocked_forward"),
        (layer_norm_resident_kernel, "resident_forward"),
    ],
)
def test_the_courses_own_kernels_ask_for_as_much(kernel, name):
    M, N, ROWS = 6, 100, 4
    (launch,) = accounting.list_launches(name, M, N, 2, ROWS=ROWS)
    strides, constants = (N, 1, N, 1), {"HAS_W": True, "HAS_B": True, **launch.constants}
    of_course = record(
        kernel, launch.grid, [*launch.tensors.values(), *strides, *launch.numbers], constants
    )
    assert not of_course.fault
    counted = tuple(
        sum(a.bytes for a in of_course.accesses if a.kind == kind) for kind in ("load", "store")
    )
    assert counted == accounting.count_bytes(name, M, N, 2, ROWS=ROWS)


def run(name: str, M: int, N: int, **sizes: int) -> dict[str, np.ndarray]:
    """Every tensor of the launches after they ran, by name; what one launch writes the next one
    reads."""
    kept: dict = {}
    for launch in accounting.list_launches(name, M, N, 4, **sizes):
        tensors = {
            key: kept.setdefault(key, tensor.to(course_lib.DEVICE))
            for key, tensor in launch.tensors.items()
        }
        launch.kernel[launch.grid](*tensors.values(), *launch.numbers, **launch.constants)
    return {key: tensor.double().cpu().numpy() for key, tensor in kept.items()}


@pytest.mark.parametrize("name", ["blocked_forward", "resident_forward"])
def test_the_forward_kernels_normalise(name):
    got = run(name, 5, 70, **({"ROWS": 2} if name == "resident_forward" else {}))
    want = reference.layer_norm(got["x"], got["w"], got["b"], 1e-5)
    for key in ("y", "mean", "rstd"):
        np.testing.assert_allclose(got[key], getattr(want, key), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["add_then_rms_norm", "add_rms_norm"])
def test_both_ways_add_and_normalise(name):
    got = run(name, 5, 70)
    np.testing.assert_allclose(got["total"], got["x"] + got["residual"], atol=1e-6)
    want = reference.rms_norm(got["total"], got["w"], 1e-5)
    np.testing.assert_allclose(got["y"], want.y, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(got["rstd"], want.rstd, rtol=2e-5)


def test_the_three_backward_kernels_add_up_every_row():
    got = run("two_stage_backward", 7, 40, rows_a_chunk=3, BLOCK_N=16)
    xhat = (got["x"] - got["mean"][:, None]) * got["rstd"][:, None]
    wdy = got["w"] * got["dy"]
    c1, c2 = (xhat * wdy).mean(axis=1, keepdims=True), wdy.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        got["dx"], (wdy - (xhat * c1 + c2)) * got["rstd"][:, None], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(got["dw"], (got["dy"] * xhat).sum(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got["db"], got["dy"].sum(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "wrong", [("nothing", 2, 3, 2), ("add_rms_norm", 0, 3, 2), ("add_rms_norm", 2, 3, 8)]
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(CourseError, match="the accounting has blocked_forward"):
        accounting.count_bytes(*wrong)


def test_every_kernel_is_shown():
    shown = accounting.show_kernels()._repr_html_()
    for kernels in accounting.KERNELS.values():
        assert all(f"def {kernel.fn.__name__}(" in shown for kernel in kernels)
