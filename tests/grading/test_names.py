"""What an exercise is open to: what may stand in a file, what may not and why, and what goes on to the child."""

from __future__ import annotations

import ast

import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.submission import names, needed
from course_lib.grading.submission.attempt import extract
from course_lib.grading.submission.extract_kernels import Unreadable, parse
from course_lib.grading.verdict import Verdict
from course_lib.sandbox import isolation, jobs

HEADS = {
    "torch": "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n",
    "numpy": "import numpy as np\n",
    "kernel": "import triton\nimport triton.language as tl\n",
}


def look(text: str, kind: str, wanted: tuple[str, ...] = ("f",), forbidden: dict[str, str] | None = None) -> str:
    """What goes on to the child out of ``text``, after the child has looked at it."""
    source = needed.cut(parse(text, "ex.py"), text, "ex.py", wanted, kind)
    names.check(ast.parse(source), names.Names(kind, forbidden or {}), "ex.py")
    return source


def in_function(lines: str, kind: str, forbidden: dict[str, str] | None = None) -> str:
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    return look(f"{HEADS[kind]}\n\ndef f(x, w):\n{body}    return x\n", kind, forbidden=forbidden)


def in_kernel(
    lines: str,
    around: str = "",
    parameters: str = "x_ptr, y_ptr, n, BLOCK: tl.constexpr",
    decorator: str = "@triton.jit",
) -> str:
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    return look(
        f"{HEADS['kernel']}{around}\n\n{decorator}\ndef f({parameters}):\n    x = tl.load(x_ptr)\n{body}", "kernel"
    )


# ---- what is open ------------------------------------------------------------------------------------------------------

OPEN = {
    "torch": [
        "with torch.no_grad():\n    y = x.detach()",
        "try:\n    y = x @ w\nexcept RuntimeError as error:\n    raise ValueError(str(error)) from None",
        "y = {k: v for k, v in zip('ab', x.unbind())}",
        "f = lambda t: t.type(torch.float32)",
        "if (n := x.norm()) > 0: y = torch.tensordot(x, w, 1)",
        "y = torch.linalg.vector_norm(x, dim=-1)",
        "y = F.linear(x, w) + nn.Linear(2, 2)(x)",
        "match x.ndim:\n    case 1 | 2: y = x\n    case n if n > 2: y = w",
        "class A:\n    def __init__(self): self._x = x\n    def get(self): return self._x\ny = A().get()",
        "y = isinstance(x, torch.Tensor) and type(x) is torch.Tensor",
        "import math\ny = math.prod(x.shape)",
        "import numpy as np\ny = np.prod(x.shape) + np.float32(1)",
        "y = '{:.3f}'.format(x.sum().item())",
        "y = getattr(x, 'shape') if hasattr(x, 'shape') else None",
        "global K\nK = 3",
        "y = torch.special.expit(x) + torch.fft.fft(x).real",
        "y = torch.vmap(lambda row: row.sum())(x)",
        "import enum\nclass Way(enum.Enum):\n    READ = 'r'\ny = Way.READ.value",
        "from fractions import Fraction\ny = Fraction(1, 3)",
        "assert isinstance(x, torch.Tensor), type(x)",
    ],
    "numpy": [
        "with np.errstate(all='ignore'):\n    y = np.einsum('ij->i', x)",
        "y = np.average(x, axis=1) + np.linalg.norm(x, axis=1)",
        "y = np.add.reduce(x) + np.add.accumulate(x)[0]",
        "y: np.ndarray = x",
        "y = isinstance(x, (np.ndarray, float))",
        "y = np.lib.stride_tricks.sliding_window_view(x, 2)",
        "y = np.random.default_rng(0).normal(size=3)",
        "f = lambda a: np.nan_to_num(a)",
        "Pair = tuple[np.ndarray, np.ndarray]",
        "import typing as tp\nPair = tp.Tuple[tp.Optional[np.ndarray], ...]\ndef g(a: tp.Annotated[np.ndarray, 'M N']) -> Pair: return a, a",
        "from collections.abc import Callable\nF = Callable[[np.ndarray], list[np.ndarray | None]]",
        "def g(a: 'np.ndarray | None' = None, *b: np.ndarray[int]): return a",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "lines"), [(kind, lines) for kind in OPEN for lines in OPEN[kind]])
def test_what_the_libraries_offer_for_computing_is_open(kind, lines):
    in_function(lines, kind)


def test_the_type_of_arrays_may_have_a_name_of_the_files_own():
    text = "import numpy as np\nArray = np.ndarray\n\n\ndef f(x: Array) -> tuple[Array, Array]:\n    return {}\n"
    assert look(text.format("x, x"), "numpy") == text.format("x, x")
    with pytest.raises(Unreadable, match=r"line 6: `np.ndarray` may stand in an annotation"):
        look(text.format("Array((3,), buffer=x), x"), "numpy")
    with pytest.raises(Unreadable, match=r"line 2: `np.ndarray` may stand in an annotation"):
        look(text.format("x, x") + "\n\ndef g(Array):\n    return Array((3,))\n\n\nf.g = g\n", "numpy", ("f", "g"))


@pytest.mark.parametrize(
    "line", ["from course_lib.norms import launchers", "import course_lib.norms.launchers as launchers"]
)
def test_the_launchers_may_be_imported_as_a_module(line):
    text = f"{line}\n\n\ndef f(ctx, x):\n    return launchers.launch_forward(x, None, None, 1e-5)\n"
    assert look(text, "autograd") == text
    with pytest.raises(Unreadable, match="is not given"):
        look(text.replace("launch_forward", "check_matrix"), "autograd")


def test_a_branch_that_python_does_not_compile_brings_its_imports_along():
    text = "import typing as tp\n\nX = tp.Any if False else float\n\n\ndef f(x: X):\n    return x\n"
    assert look(text, "torch") == text


@pytest.mark.parametrize(
    "lines",
    [
        "y = [v for v in (1, 2)]",
        "y = tl.math.fma(x, x, x)",
        "y = tl.core.load(x_ptr)",
        "y = triton.language.zeros([BLOCK], triton.language.float32)",
        "for i in tl.range(n, num_stages=2): y = i",
        "y = x.to(tl.float32).cast(tl.float64).sum()",
        "y = tl.extra.libdevice.sqrt(x)",
        "y = tl.sort(tl.arange(0, BLOCK))",
        "y = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])\nz = y.load([0])",
    ],
)
def test_what_tritons_compiler_knows_is_open_in_a_kernel(lines):
    in_kernel(lines)


@pytest.mark.parametrize(
    "decorator",
    [
        "@triton.jit",
        "@triton.jit()",
        "@triton.jit(noinline=True)",
        "@triton.jit(do_not_specialize=['n'])",
        "@jit",
        "@t.jit",
    ],
)
def test_jit_is_known_under_any_name_that_an_import_gives_it(decorator):
    assert "def f(" in in_kernel("y = x", "from triton import jit\nimport triton as t\n", decorator=decorator)


@pytest.mark.parametrize(
    "parameters",
    ["x_ptr: tl.tensor, n: tl.int32", "x_ptr, eps: tl.float32 = 1e-5, N: 'tl.constexpr' = 4", "x_ptr, /, n=E"],
)
def test_annotations_and_defaults_are_open(parameters):
    in_kernel("y = x", "E = tl.constexpr(2)\n", parameters)


def test_other_names_of_the_language_are_open():
    text = "from triton import language as T, jit\nfrom triton.language import load, constexpr as C\n\n\n@jit\ndef f(x_ptr, N: C):\n    T.store(x_ptr, load(x_ptr))\n"
    assert look(text, "kernel") == text


# ---- what is closed, and why --------------------------------------------------------------------------------------------

CLOSED = {
    "a file": ("torch", "torch.load('a')", "files"),
    "code": ("torch", "torch.compile(f)", "starts a compiler"),
    "another library": ("torch", "import numpy as np\ny = np.mean", "written with torch"),
    "memory that numpy shares": ("torch", "y = x.numpy()", "does not notice"),
    "torch in a NumPy exercise": ("numpy", "import torch", "written with numpy"),
    "the operating system": ("torch", "import os", "may import only"),
    "a module inside a module": ("torch", "y = torch.sys", "may import only"),
    "utilities": ("torch", "y = torch.utils.data", "may import only"),
    "operators by name": ("torch", "y = torch.ops.aten.mul(x, x)", "may import only"),
    "C types": ("numpy", "y = np.ctypeslib", "may import only"),
    "an array's address": ("numpy", "y = x.ctypes", "memory"),
    "strides of one's own": ("numpy", "y = np.lib.stride_tricks.as_strided(x, (9,), (1,))", "memory"),
    "the constructor of arrays": ("numpy", "y = np.ndarray((3,), buffer=x)", "is made by `np.zeros`"),
    "the constructor in a list": ("numpy", "y = [np.ndarray][0]((3,), buffer=x)", "is made by `np.zeros`"),
    "an own object that gets a type": ("numpy", "y = isinstance(x, x[np.ndarray])", "is made by `np.zeros`"),
    "an own object that is handed a type": ("numpy", "def g(a: x[type]): return a", "for its name"),
    "a type in a union of one": ("numpy", "import typing\ny = typing.Union[np.ndarray]((3,), buffer=x)", "is made by `np.zeros`"),
    "the globals of a module of enum's": ("torch", "import enum\ny = enum.global_enum", "is not given"),
    "a type that is raised": ("numpy", "raise ValueError(type(x))", "for its name"),
    "a dunder": ("torch", "y = x.__class__", "private"),
    "a private name": ("torch", "y = torch._C", "private"),
    "eval": ("torch", "eval('1')", "arguments alone"),
    "globals": ("torch", "globals()", "arguments alone"),
    "the courses own": ("torch", "from course_lib.norms import reference", "may import only"),
    "solutions": ("torch", "import solutions", "may import only"),
    "tests": ("torch", "from tests.mutants import a", "may import only"),
    "a sibling": ("torch", "from . import a", "one file"),
    "everything": ("torch", "from math import *", "Import the names"),
    "patching": ("torch", "torch.sum = max", "belongs to a library"),
    "what is not there": ("numpy", "y = np.meen(x)", "Is it mistyped?"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "lines", "why"), CLOSED.values(), ids=CLOSED)
def test_what_reaches_outside_is_refused_with_its_line_and_the_reason(kind, lines, why):
    if lines.startswith(("import", "from")) and "*" in lines:  # not possible in a function
        with pytest.raises(Unreadable, match=r"ex.py, line 1: ") as refused:
            look(f"{lines}\n\n\ndef f(x):\n    return x\n", kind)
    else:
        with pytest.raises(
            Unreadable, match=f"ex.py, line {HEADS[kind].count(chr(10)) + 4 + lines.count(chr(10))}: "
        ) as refused:
            in_function(lines, kind)
    assert refused.value.cause == "not_allowed" and why in str(refused.value), str(refused.value)


@pytest.mark.parametrize(
    ("kind", "module", "line", "why"),
    [
        ("torch", "torch", "load('file')", "it reads or writes files"),
        ("torch", "torch", "native_layer_norm(x, (3,), w, w, 1e-5)", "a shortcut that this exercise forbids"),
        ("torch", "torch", "nothing_of_the_kind(x)", "nothing in the file defines it"),
        ("numpy", "numpy", "fromfile('file')", "it reads or writes files"),
        ("numpy", "torch", "sqrt(x)", "written with numpy"),
        ("torch", "numpy", "einsum('ij->i', x)", "written with torch"),
    ],
)
def test_what_is_imported_all_at_once_is_looked_up_name_by_name(kind, module, line, why):
    text = f"from {module} import *\n\n\ndef f(x, w):\n    y = {line}\n    return x\n"
    with pytest.raises(Unreadable) as refused:
        look(text, kind, forbidden={"layer_norm": "it is the exercise"})
    assert why in str(refused.value), str(refused.value)


def test_of_what_is_imported_all_at_once_only_what_is_used_comes_in():
    tree = ast.parse(
        "from torch import *\nfrom torch import *\n\n\ndef f(x):\n    mean = x\n    return sqrt(mean) + load_it(x)\n\n\ndef load_it(x):\n    return x\n"
    )
    names.check(tree, names.Names("torch", {}), "ex.py")
    assert ast.unparse(tree).startswith("from torch import sqrt\nfrom torch import sqrt\n\n")
    unused = ast.parse("from torch import *\n\n\ndef f(x):\n    return x\n")
    names.check(unused, names.Names("torch", {}), "ex.py")
    assert ast.unparse(unused).startswith("from torch import float32\n")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("y = tl.core.builtins", "may import only"),
        ("y = triton.runtime", "may import only"),
        ("y = tl.inline_asm_elementwise('', '', [x], tl.int32, True, 1)", "past Triton"),
        ("y = x.handle", "has. Is it mistyped?"),
        ("y = x._semantic", "has. Is it mistyped?"),
        ("t = tl", "is a module"),
        ("with x: pass\nlambda: 1", "Triton's compiler knows no such thing"),
        ("a = b = x", "one `=` a line"),
        ("y = getattr(x, 'core')", "is Python, not Triton"),
        ("tl.load = x", "is assigned to"),
        ("tl = x", "is an import"),
    ],
)
def test_what_reaches_out_of_a_kernel_is_refused(lines, why):
    with pytest.raises(Unreadable) as refused:
        in_kernel(lines)
    assert refused.value.cause == "not_allowed" and why in str(refused.value), str(refused.value)


def test_a_python_helper_and_a_plain_global_are_told_what_they_lack():
    with pytest.raises(Unreadable, match=r"`g` is a Python function of your file.*Put `@triton.jit`"):
        in_kernel("y = g(x)", "\n\ndef g(x):\n    return x\n")
    with pytest.raises(Unreadable, match=r"Write `EPS = tl.constexpr"):
        in_kernel("y = EPS", "EPS = 1e-5\n")


@pytest.mark.parametrize("expression", ["torch.var_mean(x)", "x.var()", "torch.Tensor.var(x)", "torch.std(x)", "x.std"])
def test_a_shortcut_is_held_in_every_form(expression):
    with pytest.raises(Unreadable, match=r"is a shortcut that this exercise forbids: a reason\."):
        in_function(f"y = {expression}", "torch", {"var": "a reason"})
    in_function(f"y = {expression}", "torch")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.nn.functional.layer_norm",
        "torch.layer_norm",
        "nn.LayerNorm",
        "F.layer_norm",
        "nn.GroupNorm",
        "torch.native_layer_norm",
        "torch.ops.aten.native_layer_norm",
    ],
)
def test_the_whole_answer_is_held_in_every_form(expression):
    with pytest.raises(Unreadable, match=r"line 7: .* is a shortcut that this exercise forbids"):
        in_function(f"y = {expression}", "torch", dict(catalog.get("01a").forbidden))


# ---- what shows only while it runs ---------------------------------------------------------------------------------------


def verdict_on(exercise_id: str, text: str, tmp_path) -> Verdict:
    file = tmp_path / "mine.py"
    file.write_text(text)
    return check(catalog.get(exercise_id), file)


def test_a_name_put_together_is_refused_and_no_except_hides_it(tmp_path):
    text = texts.read_solution(catalog.get("03a")).replace(
        "    deviation = ",
        "    try:\n        getattr(np, 'v' + 'ar')(x)\n    except BaseException:\n        pass\n    deviation = ",
    )
    verdict = verdict_on("03a", text, tmp_path)
    assert (verdict.status, verdict.cause) == ("error", "not_allowed"), verdict.message
    assert "`np.var` is a shortcut that this exercise forbids" in verdict.message
    assert verdict.place.source.strip() == "getattr(np, 'v' + 'ar')(x)"


def test_an_attribute_of_ones_own_may_have_a_forbidden_name(tmp_path):
    text = texts.read_solution(catalog.get("03a")).replace(
        "    return mean, var\n\n\ndef two", "    s = S(mean, var)\n    return s.mean, s.var\n\n\ndef two"
    )
    text = text.replace(
        "import numpy as np\n",
        "from typing import NamedTuple\n\nimport numpy as np\n\n\nclass S(NamedTuple):\n    mean: np.ndarray\n    var: np.ndarray\n",
    )
    verdict = verdict_on("03a", text, tmp_path)
    assert verdict.passed, verdict.message


# ---- where nothing shuts a check in ---------------------------------------------------------------------------------------


def test_without_a_sandbox_the_lists_stay_and_the_verdict_says_why(tmp_path, monkeypatch):
    text = texts.read_solution(catalog.get("03a")).replace("np.mean(x, axis=1)", "np.average(x, axis=1)")
    assert verdict_on("03a", text, tmp_path).passed
    monkeypatch.setattr(jobs, "BEST_TIER", isolation.LIMITS)
    verdict = verdict_on("03a", text, tmp_path)
    assert (verdict.status, verdict.cause, verdict.tier) == ("error", "not_allowed", isolation.LIMITS), verdict.message
    assert "`np.average` is not on the list" in verdict.message and "isolation: limits only" in verdict.message
    assert verdict_on("03a", texts.read_solution(catalog.get("03a")), tmp_path).passed


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="the GPU's tier is the machine's own")
@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_every_solution_keeps_to_the_lists(exercise):
    text = (paths.SOLUTIONS / f"{exercise.file}.py").read_text()
    rules = extract(exercise, text, "ex.py").rules
    assert rules is not None and rules["unlisted"] is None


# ---- what goes on to the child --------------------------------------------------------------------------------------------


def test_only_what_is_needed_goes_on_each_line_at_its_number():
    text = (
        "import torch, os\nimport numpyy.not_needed\nprint('hello')\nEPS = 1e-5; SECRET = open('/etc/hostname')\nTABLE = {}\n\n\ndef f(x):\n    return old(x) if 0 else g(x) + TABLE['a']\n\n\n"
        "def g(x):\n    return x + EPS\n\n\ndef f_before(x):\n    return os.getcwd()\n\n\nTABLE['a'] = 1\nTABLE.update(b=2)\nassert f(torch.ones(1)) == 3\n"
        "if __name__ == '__main__':\n    old = 3\n"
    )
    cut = needed.cut(parse(text, "ex.py"), text, "ex.py", ("f",), "torch").splitlines()
    kept = {number: line for number, line in enumerate(cut, 1) if line.strip()}
    assert (
        kept[4] == "EPS = 1e-05"
        and kept[5] == "TABLE = {}"
        and kept[8] == "def f(x):"
        and kept[13] == "    return x + EPS"
    )
    assert kept[20] == "TABLE['a'] = 1" and kept[21] == "TABLE.update(b=2)" and max(kept) == 21
    assert not any(word in line for line in kept.values() for word in ("print", "SECRET", "getcwd", "numpyy", "import"))


def test_of_two_functions_of_one_name_the_last_one_counts():
    text = "import torch\n\n\ndef f(x):\n    return nothing(x)\n\n\ndef f(x):\n    return x\n"
    assert "nothing" not in look(text, "torch") and look(text, "torch").count("def f") == 1


def test_an_old_kernel_is_not_looked_at():
    old = "\n\n@triton.autotune([], [])\n@triton.jit\ndef before(x):\n    os.abort()\n"
    assert "before" not in in_kernel("y = x", old)


def test_methods_that_need_no_object_are_called_by_their_names():
    text = "import torch\n\n\nclass N(torch.autograd.Function):\n    @staticmethod\n    def f(x): return x\n    @staticmethod\n    def g(x): return x\n"
    assert look(text, "torch", ("f", "g")).rstrip().endswith("f, g = N.f, N.g")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class A:\n    def f(self, x): return x\n", "line 2: `f` is a method of `A`, and takes self"),
        ("class A:\n    def g(x): return x\n", "has no function named `f`; it has the class `A`"),
        ("def g(x): return x\n", "it has `g`"),
        ("x = 1\n", "it has no function at all"),
    ],
)
def test_a_function_that_is_not_there(text, says):
    with pytest.raises(Unreadable) as refused:
        look(text, "torch")
    assert refused.value.cause == "no_function" and says in str(refused.value)


# ---- words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "after"), [("total =", "="), ("total = x +  # the rest", "+"), ("total += ", "+="), ("if x and", "and")]
)
def test_a_line_that_is_not_finished_is_said_to_be(line, after):
    with pytest.raises(Unreadable, match="line 2: this line is not finished") as refused:
        parse(f"x = 1\n{line}\ny = 2\n", "ex.py")
    assert refused.value.cause == "syntax_error" and f"nothing stands after `{after}`" in str(refused.value)


def test_a_function_that_returns_nothing_is_shown_at_its_first_line(tmp_path):
    text = texts.read_solution(catalog.get("01a"))
    verdict = verdict_on("01a", text.replace("    return y.to(x.dtype)\n", ""), tmp_path)
    assert verdict.cause == "wrong_return" and verdict.place.source.startswith("def layer_norm(")


def test_a_refusal_is_told_with_hidden_cases_too(tmp_path):
    text = texts.read_solution(catalog.get("01a")).replace("    wide = ", "    torch.load('f')\n    wide = ")
    (tmp_path / "mine.py").write_text(text)
    verdict = check(catalog.get("01a"), tmp_path / "mine.py", secret="a")
    assert (
        verdict.cause == "not_allowed"
        and "`torch.load` cannot be used in an exercise: it reads or writes files" in verdict.message
    )


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="there is no interpreter")
def test_a_language_that_the_interpreter_has_changed_is_as_open():
    """As it does for a launch, and for a helper that is called outside of one."""
    import triton.language as tl
    from triton.runtime import interpreter

    def kernel():
        return None

    kernel = type(kernel)(kernel.__code__, {"tl": tl}, "kernel")
    scope = interpreter._patch_lang(kernel)
    try:
        in_kernel(
            "y = tl.core.load(x_ptr)\ny = tl.math.fma(x, x, x)\nfor i in tl.range(n):\n    y = tl.sum(x) + tl.zeros([4], tl.int32)"
        )
        with pytest.raises(Unreadable, match="inline_asm_elementwise"):
            in_kernel("y = tl.inline_asm_elementwise('', '', [x], tl.int32, True, 1)")
    finally:
        scope.restore()
