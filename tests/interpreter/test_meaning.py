"""What the interpreter makes of a kernel's Python: messages, names from elsewhere, and lines.
Values stand in constructs.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

import course_lib

pytestmark = pytest.mark.skipif(course_lib.MODE != "cpu", reason="needs the interpreter")
HEAD = "import triton\nimport triton.language as tl\n\n\n"


def load(folder: Path, text: str):
    """The module that ``text`` is."""
    file = folder / "kernels_to_rewrite.py"
    file.write_text(text)
    described = importlib.util.spec_from_file_location("kernels_to_rewrite", file)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules[module.__name__] = module
    described.loader.exec_module(module)
    return module


def run(
    folder: Path, body: str, *arguments, head: str = HEAD, signature: str = "y_ptr, n"
) -> torch.Tensor:
    y = torch.full((8,), -9.0)
    text = f"{head}@triton.jit\ndef kernel({signature}):\n    cols = tl.arange(0, 8)\n"
    module = load(folder, text + "".join(f"    {line}\n" for line in body.splitlines()))
    module.kernel[(1,)](y, *(arguments or (5,)))
    return y


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("tl.store(y_ptr + cols, 1.0, mask=0 <= cols < n)", r"write \(a <= b\) & \(b < c\)"),
        ("if cols < n:\n    tl.store(y_ptr, 1.0)", "is a block"),
        ("while cols < n:\n    tl.store(y_ptr, 1.0)", "is a block"),
        ("x = 1.0 if cols < n else 0.0\ntl.store(y_ptr, x)", "is a block"),
        ("if 1.5:\n    tl.store(y_ptr, 1.0)", "is a float"),
        ("for i in (1, 2):\n    tl.store(y_ptr, 1.0)", "over nothing else"),
        ("for i in tl.static_range(n):\n    tl.store(y_ptr, 1.0)", "constexpr"),
        ("for i in range(0.5):\n    tl.store(y_ptr, 1.0)", "integers, not"),
        ("for i in range(cols):\n    tl.store(y_ptr, 1.0)", "one of them is a block"),
        (
            "step = 0 - n\nfor i in range(0, n, step):\n    tl.store(y_ptr, 1.0)",
            "step of range is -5",
        ),
        ("x = n\nif x is n:\n    tl.store(y_ptr, 1.0)", "compare with =="),
        ("if n is not 5:\n    tl.store(y_ptr, 1.0)", "compare with =="),
        ("a = b = 1.0\ntl.store(y_ptr, a + b)", "one assignment for each name"),
        ("a, b = n\ntl.store(y_ptr, a + b)", "only tuples can be"),
        ("a, b, c = 1, n\ntl.store(y_ptr, a + b)", "a tuple of 2 is taken apart into 3"),
        ("tl.store(y_ptr, int(n))", r"x.to\(tl.int32\)"),
        ("tl.store(y_ptr, float(n))", r"x.to\(tl.float32\)"),
        ("tl.store(y_ptr, abs(n))", "write tl.abs"),
    ],
)
def test_what_a_compiler_refuses_and_python_would_misread_is_refused_in_words(
    tmp_path, body, words
):
    with pytest.raises(Exception, match=words) as raised:
        run(tmp_path, body)
    frames = [frame for frame in raised.traceback if frame.path.name == "kernels_to_rewrite.py"]
    while not frames:  # Triton wraps the kernel's own exception
        cause = raised.value.__cause__
        assert cause is not None
        raised = pytest.ExceptionInfo.from_exception(cause)
        frames = [frame for frame in raised.traceback if frame.path.name == "kernels_to_rewrite.py"]
    # the decorator, the definition and `cols` come before the body
    first = len(HEAD.splitlines()) + 4
    assert first <= frames[-1].lineno + 1 < first + len(body.splitlines())


def test_a_function_of_constants_gets_no_value_of_a_running_kernel(tmp_path):
    head = f"{HEAD}@triton.constexpr_function\ndef is_set(x):\n    return 1 if x else 0\n\n\n"
    with pytest.raises(Exception, match="give it constants"):
        run(tmp_path, "tl.store(y_ptr, is_set(n))", head=head)
    with pytest.raises(Exception, match="handed to no other function"):
        run(tmp_path, "tl.store(y_ptr, is_set(tl.load))", head=head)


@pytest.mark.parametrize(
    "promise",
    [
        "tl.multiple_of(n, 4)",
        "tl.multiple_of(cols + n, 8)",
        "tl.max_contiguous(cols * 2, 8)",
        "tl.max_contiguous(cols % 4, 8)",
        "tl.max_constancy(cols < n, 2)",
        "tl.multiple_of(cols[:, None] + n, (4, 1))",
    ],
)
def test_a_promise_that_does_not_hold_is_refused(tmp_path, promise):
    with pytest.raises(Exception, match="does not hold"):
        run(tmp_path, f"x = {promise}\ntl.store(y_ptr + cols, 1.0)")


@pytest.mark.parametrize(
    "promise",
    [
        "tl.multiple_of(n, 5)",
        "tl.multiple_of(cols, 8)",
        "tl.max_contiguous(cols % 4, 4)",
        "tl.max_contiguous(cols + n, 16)",
        "tl.max_constancy(cols // 2, 2)",
        "tl.max_constancy(cols < 4, 4)",
        "tl.multiple_of(y_ptr + cols, 16)",
    ],
)
def test_a_promise_that_holds_changes_nothing(tmp_path, promise):
    y = run(tmp_path, f"x = {promise}\ntl.store(y_ptr + cols, 1.0)")
    assert y.tolist() == [1.0] * 8


def test_a_docstring_with_a_line_that_begins_with_def_is_no_definition(tmp_path):
    y = run(tmp_path, '"""Says:\n\ndef nothing():\n"""\ntl.store(y_ptr, n)')
    assert y[0] == 5


def test_names_that_are_imported_from_the_language_run(tmp_path):
    head = (
        "import triton\nfrom triton.language import arange, load, store, static_range, sum\nfrom"
        " triton.language.math import exp2\n\n\n"
    )
    text = (
        f"{head}@triton.jit\ndef kernel(y_ptr, n):\n    cols = arange(0, 8)\n    for i in"
        " static_range(2):\n        store(y_ptr + i + cols * 0, exp2(n.to(load(y_ptr).dtype)) +"
        " sum(cols, 0))\n"
    )
    y = torch.zeros(8)
    load(tmp_path, text).kernel[(1,)](y, 3)
    assert y.tolist() == [36.0, 36.0, *[0.0] * 6]


def test_a_kernel_sees_the_variables_of_the_function_around_it(tmp_path):
    text = (
        f"{HEAD}def make():\n    scale = tl.constexpr(3)\n\n    @triton.jit\n    def helper(x):\n  "
        "      return x * scale\n\n    @triton.jit\n    def kernel(y_ptr, n):\n       "
        " tl.store(y_ptr, helper(n) + scale)\n\n    return kernel\n"
    )
    y = torch.zeros(8)
    load(tmp_path, text).make()[(1,)](y, 4)
    assert y[0] == 15


def test_a_missing_import_is_missing(tmp_path):
    with pytest.raises(Exception, match="name 'np' is not defined"):
        run(tmp_path, "tl.store(y_ptr, np.float32(1))")


def test_a_launch_adds_two_hidden_names_to_a_kernels_module(tmp_path):
    module = load(tmp_path, f"{HEAD}@triton.jit\ndef kernel(y_ptr):\n    tl.store(y_ptr, 1.0)\n")
    before = set(vars(module))
    module.kernel[(1,)](torch.zeros(1))
    assert {
        name for name in set(vars(module)) - before if not name.startswith("__triton_")
    } == set()


def test_lanes_that_a_masked_load_leaves_undefined_do_not_pass_for_zeros(tmp_path):
    body = (
        "x = tl.load(y_ptr + cols, mask=cols < n)\ntl.store(y_ptr, tl.sum(x, 0))\ntl.store(y_ptr +"
        " 1, tl.max(x, 0))"
    )
    y = run(tmp_path, body)
    assert y[0].isnan() and y[1] > 1e38
    body = (
        "x = tl.load(y_ptr + cols, mask=cols < n)\ntl.store(y_ptr, tl.sum(tl.where(cols < n, x,"
        " 0.0), 0))"
    )
    assert run(tmp_path, body)[0] == -45


def test_other_of_a_single_number_may_be_zero(tmp_path):
    """Triton's own code asks `if other`, which is about there being one, and not about its
    value."""
    assert run(tmp_path, "tl.store(y_ptr, tl.load(y_ptr + 1, mask=n > 5, other=0.0))")[0] == 0


def test_a_division_by_zero_does_not_pass_for_zero(tmp_path):
    y = run(tmp_path, "tl.store(y_ptr, n // (n - 5))\ntl.store(y_ptr + 1, n % (n - 5))")
    assert y[0].abs() > 1e6 and y[1].abs() > 1e6


def test_the_old_value_of_a_masked_atomic_does_not_pass_for_zero(tmp_path):
    y = run(
        tmp_path,
        "old = tl.atomic_add(y_ptr + cols, 1.0, mask=cols < 2)\ntl.store(y_ptr + cols, old)",
    )
    assert y[:2].tolist() == [-9.0, -9.0] and not (y[2:] == 0).any() and y[2:].isnan().any()


@pytest.mark.filterwarnings("error")
def test_masked_lanes_that_overflow_warn_nobody(tmp_path):
    body = "x = tl.load(y_ptr + cols, mask=cols < n)\ntl.store(y_ptr + cols, x * x, mask=cols < n)"
    assert run(tmp_path, body).tolist() == [81.0] * 5 + [-9.0] * 3


def test_an_operation_that_is_missing_is_refused_in_words(tmp_path):
    with pytest.raises(
        Exception, match=r"CPU mode cannot run tl\.inline_asm_elementwise; a GPU can"
    ):
        run(
            tmp_path,
            "tl.store(y_ptr, tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [n], tl.int32,"
            " True, 1))",
        )
