"""Grading plain functions: what is taken out of a file and what is refused, what comes back from the child, and in which words."""

from __future__ import annotations

import dataclasses
import textwrap

import pytest

from course_lib import catalog
from course_lib.grading.check import check
from course_lib.grading.submission.extract_functions import extract, fingerprint
from course_lib.grading.submission.extract_kernels import Unreadable
from course_lib.sandbox.jobs import ResourceLimits

HEAD = {"torch": "import torch\n\n\n", "numpy": "import numpy as np\n\n\n"}


def taken(body: str, kind: str = "torch"):
    return extract(HEAD[kind] + textwrap.dedent(body), "ex.py", ("f",), kind)


def one_line(line: str, kind: str = "torch"):
    return taken(f"def f(x, w):\n    {line}\n    return x\n", kind)


REFUSED = {
    "the answer itself": "y = torch.nn.functional.layer_norm(x, (3,))",
    "the answer under another name": "y = torch.native_layer_norm(x, (3,), w, None, 1e-5)",
    "an operator by name": "y = torch.ops.aten.native_layer_norm(x, (3,), w, None, 1e-5)",
    "autograd": "y = torch.autograd.grad(x, w)",
    "backward": "x.backward()",
    "compile": "y = torch.compile(f)",
    "load": "y = torch.load('a')",
    "from_file": "y = torch.from_file('a')",
    "hub": "torch.hub.load('a', 'b')",
    "a function behind a tensor": "y = x.register_hook",
    "numpy behind a tensor": "y = x.numpy()",
    "data_ptr": "y = x.data_ptr()",
    "apply_": "x.apply_(f)",
    "an import": "import os",
    "open": "open('/etc/passwd')",
    "eval": "eval('1')",
    "getattr": "getattr(torch, 'nn')",
    "vars": "vars()",
    "a dunder attribute": "y = x.__class__",
    "a dunder of a function": "y = f.__globals__",
    "a frame behind a generator": "y = (i for i in [1]).gi_frame",
    "a format that reaches an attribute": "y = '{0.__class__}'.format(x)",
    "a lambda": "y = lambda: 1",
    "a class": "class A: pass",
    "try": "try: pass\n    except ValueError: pass",
    "with": "with torch.no_grad(): pass",
    "global": "global x",
    "a walrus": "y = (z := x)",
    "await": "await x",
    "yield": "yield x",
    "an attribute assigned": "x.data = w",
    "the module assigned": "torch = x",
    "the module deleted": "del torch",
    "a decorator": "@torch.compile\n    def g(): pass",
    "a match": "match x:\n        case 1: pass",
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
def test_what_reaches_out_of_arithmetic_is_refused_with_its_line(line):
    with pytest.raises(Unreadable) as refused:
        one_line(line)
    assert refused.value.cause in ("not_allowed", "undefined_name") and "ex.py, line" in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "v = np.var(x)",
        "v = x.var()",
        "v = np.std(x)",
        "v = np.average(x)",
        "v = np.cov(x)",
        "v = np.load('f')",
        "x.tofile('f')",
    ],
)
def test_what_numpy_does_for_you_is_refused(line):
    with pytest.raises(Unreadable, match="not on the list"):
        one_line(line, "numpy")


@pytest.mark.parametrize(
    "line",
    [
        "y = x.float().mean(dim=-1, keepdim=True)",
        "y = torch.rsqrt((x * x).sum(-1) / x.shape[-1] + 1e-5)",
        "y = [row.sum() for row in x]",
        "y = sum(x[i] * w[i] for i in range(len(x)))",
        "y = torch.zeros(x.shape, dtype=torch.float32)\n    y[0] = 1",
        "assert x.ndim == 2, f'{x.shape}'",
        "for i, row in enumerate(x):\n        print(i, row.sum().item())",
        "y = torch.where(x > 0, x, -x).to(x.dtype)",
        "y: torch.Tensor = x",
    ],
)
def test_arithmetic_is_taken(line):
    assert one_line(line).names == ("f",)


def test_the_reason_for_a_forbidden_word_is_given_and_a_variable_may_have_its_name(tmp_path):
    text = "import torch\n\n\ndef layer_norm(x, w, b, eps):\n    {}\n    return x\n"
    file = tmp_path / "mine.py"
    for line, word in (
        ("x = torch.nn.functional.layer_norm(x, (3,))", "`torch.nn.functional.layer_norm`"),
        ("x = torch.native_layer_norm(x)", "`torch.native_"),
    ):
        file.write_text(text.format(line))
        verdict = check(catalog.get("01a"), file)
        assert (verdict.status, verdict.cause) == ("error", "not_allowed")
        assert word in verdict.message and catalog.get("01a").forbidden["layer_norm"] in verdict.message
    assert extract(text.format("var = x.mean()"), "ex.py", ("layer_norm",), "torch", {"var": "a reason"}).names == (
        "layer_norm",
    )
    with pytest.raises(Unreadable, match=r"line 5: `.mean` is not on the list for this exercise: a reason\."):
        extract(text.format("var = x.mean()"), "ex.py", ("layer_norm",), "torch", {"mean": "a reason"})


def test_lines_stay_where_they_are_and_the_rest_of_the_file_is_left_behind():
    text = "import torch\nprint('hello')\nEPS = 1e-5\nSECRET = open('/etc/hostname')\n\n\ndef g(x):\n    return x + EPS\n\n\ndef f(x):\n    return g(x)\n"
    source = extract(text, "ex.py", ("f",), "torch").source.splitlines()
    assert (
        source[2] == "EPS = 1e-05" and source[6:8] == ["def g(x):", "    return x + EPS"] and source[10] == "def f(x):"
    )
    assert not any("hello" in line or "SECRET" in line for line in source)


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        ("import torch\n\n\ndef g(x):\n    return x\n", "no_function", "has no function named `f`; it has `g`"),
        ("import torch\n", "no_function", "it has no function at all"),
        ("import torch\ndef f(x):\n    return xx\n", "undefined_name", "line 3: `xx` is used"),
        ("import torch\ndef f(x:\n", "syntax_error", "line 2"),
        ("import torhc\ndef f(x):\n    return x\n", "import_fails", "needs only `import torch`"),
        ("import torch\nK = torch.tensor(3)\ndef f(x):\n    return K\n", "undefined_name", "line 4: `K`"),
        ("def f(x):\n    return x\n", "not_allowed", "first line"),
    ],
)
def test_a_file_that_cannot_be_graded_says_why(text, cause, words):
    with pytest.raises(Unreadable) as refused:
        extract(text, "ex.py", ("f",), "torch")
    assert refused.value.cause == cause and words in str(refused.value)


def test_the_fingerprint_is_of_the_code():
    text = HEAD["torch"] + "def f(x):\n    # a comment\n    pass\n"
    assert fingerprint(text, "ex.py", ("f",)) == fingerprint(
        text.replace("    # a comment\n", '    """Words."""\n'), "ex.py", ("f",)
    )
    assert fingerprint(text, "ex.py", ("f",)) != fingerprint(text.replace("pass", "return x"), "ex.py", ("f",))


# ---- what a function returns -------------------------------------------------------------------------------------------

RETURNS = {
    "nothing": ("y = x", "wrong_return", "returned None; asked for: y"),
    "a tuple": ("return x, x", "wrong_return", "returned 2 values; asked for: y"),
    "a number": ("return 3.0", "wrong_return", "y came back as `float`; asked for: shape (3, 8), fp32"),
    "another shape": (
        "return x.reshape(-1)",
        "wrong_return",
        "y came back as shape (24,), fp32; asked for: shape (3, 8), fp32",
    ),
    "another dtype": ("return x.double()", "wrong_return", "y came back as shape (3, 8), float64"),
    "x itself": ("return x", "wrong_values", "y[0, 0] is"),
    "an error": ("return x @ x", "function_raised", "line 5: RuntimeError"),
    "a loop without end": ("while True: pass", "time_limit", "stopped after the time limit"),
    "the end of the process": ("return x.expand(10**9, 3, 8).reshape(-1).double()", "function_raised", "RuntimeError"),
}


@pytest.mark.parametrize(("body", "cause", "words"), RETURNS.values(), ids=RETURNS.keys())
def test_every_kind_of_return_has_its_words(body, cause, words, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"import torch\n\n\ndef layer_norm(x, w, b, eps):\n    {body}\n")
    verdict = check(catalog.get("01a"), file, limits=dataclasses.replace(ResourceLimits.for_mode("torch"), case=2.0))
    assert (verdict.cause, words in verdict.message) == (cause, True), verdict.message
    assert (verdict.mode, verdict.status, verdict.exit_code) == ("torch", "fail", 1)


def test_what_raises_while_it_is_imported_cannot_be_read(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import torch\n\nLIMIT = 1 // 0\n\n\ndef layer_norm(x, w, b, eps):\n    return x * LIMIT\n")
    verdict = check(catalog.get("01a"), file)
    assert (verdict.status, verdict.exit_code) == ("error", 3) and "line 3: ZeroDivisionError" in verdict.message
    assert {case.status for case in verdict.cases} == {"not run"}
