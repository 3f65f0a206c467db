"""What may stand in a file: what is refused, with its line and the reason, what is not, and what
goes on to the process that runs it."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.kind import find_kind
from course_lib.grading.submission import attempt, kernel_check, needed, oddities, shortcuts
from course_lib.grading.submission.source import Unreadable, check_imports, parse, read_text
from course_lib.grading.verdict import Verdict

HEADS = {
    "torch": "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n",
    "numpy": "import numpy as np\n",
    "kernel": "import triton\nimport triton.language as tl\n",
}
HEAD = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(x_ptr, y_ptr, n,"
    " BLOCK: tl.constexpr):\n"
)
FIRST = HEAD.count("\n") + 1  # the number of the first line of the body


def look(
    text: str, kind: str, wanted: tuple[str, ...] = ("f",), forbidden: dict[str, str] | None = None
) -> str:
    """What runs of ``text``, after the process that runs it has looked at it."""
    source = needed.cut(parse(text, "ex.py"), "ex.py", wanted, find_kind(kind)).write(text)
    if kind == "kernel":
        kernel_check.check(ast.parse(source), source, "ex.py")
    else:
        shortcuts.check(ast.parse(source), shortcuts.Shortcuts(forbidden or {}), "ex.py")
    return source


def taken(text: str) -> str:
    return look(text, "kernel", ("kernel",))


def with_body(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in ("offsets = tl.arange(0, BLOCK)", *lines))


def refusal(text: str) -> Unreadable:
    with pytest.raises(Unreadable) as refused:
        taken(text)
    return refused.value


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
        f"{HEADS['kernel']}{around}\n\n{decorator}\ndef f({parameters}):\n    x ="
        f" tl.load(x_ptr)\n{body}",
        "kernel",
    )


# ---- kernels: what the process that observes launches may run ------------------------------------

REFUSED = {
    "an import": "import os",
    "an import from": "from os import path",
    "open": "open('/etc/passwd')",
    "eval": "eval('1')",
    "exec": "exec('1')",
    "__import__": "__import__('os')",
    "getattr": "getattr(tl, 'core')",
    "globals": "globals()",
    "vars": "vars()",
    "a dunder attribute": "x = n.__class__",
    "a dunder attribute of a call": "x = print.__self__",
    "a dunder of a string": "x = ''.__class__.__mro__",
    "a private attribute": "x = n._value",
    "a dunder name": "x = __name__",
    "a dunder name assigned": "__x = n",
    "an attribute assigned": "tl.load = n",
    "an attribute of a value assigned": "offsets.value = n",
    "an attribute added to": "tl.x += n",
    "an element assigned": "offsets[0] = n",
    "a loop over an attribute": "for tl.load in range(3): pass",
    "a lambda": "f = lambda: 1",
    "a class": "class A: pass",
    "try": "try: x = 1\n    except ValueError: x = 2",
    "with": "with n: x = 1",
    "del": "del n",
    "raise": "raise ValueError",
    "match": "match n:\n        case 1: x = 1",
    "a dict": "x = {1: 2}",
    "a set": "x = {1, 2}",
    "a walrus": "if (x := n): pass",
    "yield": "yield n",
    "a nested function": "def inner(): pass",
    "triton.runtime": "x = triton.runtime",
    "triton.jit": "x = triton.jit(n)",
    "tl.semantic": "x = tl.semantic",
    "inline assembly": "x = tl.inline_asm_elementwise('mov', '=r', [n], tl.int32, True, 1)",
    "str.format": "x = '{0.__class__}'.format(n)",
    "str.format_map": "x = '{a}'.format_map(n)",
    "an attribute in an f-string": "print(f'{n.__class__}')",
    "an attribute in a format": "print(f'{1:{n.__class__}}')",
    "an alias of the module": "t = tl\n    x = t.core",
    "handle": "x = offsets.handle",
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_what_reaches_out_of_a_kernel_is_refused_with_its_line(line):
    refused = refusal(with_body(line))
    assert refused.cause == "not_allowed" and f"line {FIRST + 1}: " in str(refused), str(refused)


def test_the_builtins_are_not_there():
    assert "`__builtins__`" in str(refusal(with_body("x = __builtins__")))


@pytest.mark.parametrize(
    "parameters",
    [
        "x_ptr: print('ran')",
        "x_ptr, n=open('f')",
        "x_ptr, n=tl.core",
        "x_ptr) -> (print('ran')",
        "x_ptr, n=(lambda: 1)()",
    ],
)
def test_a_signature_that_runs_code_is_refused(parameters):
    with pytest.raises(Unreadable, match="line 6: "):
        taken(HEAD.replace("x_ptr, y_ptr, n, BLOCK: tl.constexpr", parameters) + "    return 1\n")


@pytest.mark.parametrize(
    "decorators",
    [
        "@triton.autotune(configs=[], key=[])\n@triton.jit",
        "@triton.heuristics({})\n@triton.jit",
        "@print\n@triton.jit",
        "@triton.jit\n@print",
    ],
)
def test_other_decorators_are_refused(decorators):
    refused = refusal(with_body("x = 1").replace("@triton.jit", decorators))
    assert refused.cause == "not_allowed" and "keep `@triton.jit`, and remove the others" in str(
        refused
    )


def test_of_several_wrong_kernels_the_first_in_the_file_is_named():
    helpers = "".join(
        f"@print\n@triton.jit\ndef helper_{number}(x):\n    return x\n\n\n" for number in range(20)
    )
    calls = [f"helper_{number}(offsets)" for number in range(20)]
    text = with_body(*calls).replace("@triton.jit\n", helpers + "@triton.jit\n", 1)
    assert "`helper_0` is decorated" in str(refusal(text))


def test_an_undefined_name_is_named_with_its_line():
    refused = refusal(with_body("x = tl.load(x_ptr + offsets)", "tl.store(y_ptr + offset, x)"))
    assert refused.cause == "undefined_name" and f"line {FIRST + 2}: `offset` is used" in str(
        refused
    )


@pytest.mark.parametrize("name", ["np", "torch", "os"])
def test_a_module_that_was_never_imported_is_undefined(name):
    refused = refusal(with_body(f"x = {name}.zeros(3)"))
    assert refused.cause == "undefined_name" and f"line {FIRST + 1}: `{name}` is used" in str(
        refused
    )


def test_an_import_is_named_and_not_its_attribute():
    refused = refusal(
        HEAD.replace("\n\n\n", "\nimport numpy as np\n\n", 1) + "    x = np.linalg.norm(n)\n"
    )
    assert refused.cause == "not_allowed" and f"line {FIRST}: `np` is an import" in str(refused)


def test_a_plain_global_is_told_how_to_become_a_constant():
    refused = refusal(
        "import triton\nimport triton.language as tl\nEPS = 1e-5\n"
        + HEAD[HEAD.index("\n\n@") :]
        + "    x = EPS\n"
    )
    assert refused.cause == "not_allowed" and "`EPS = tl.constexpr(...)`" in str(refused)


@pytest.mark.parametrize("where", ["helper", "default of a helper"])
def test_helpers_are_looked_at_as_well(where):
    helper = (
        "@triton.jit\ndef helper(x):\n    return open(x)\n"
        if where == "helper"
        else "@triton.jit\ndef helper(x=open('f')):\n    return x\n"
    )
    assert refusal(HEAD + "    x = helper(n)\n\n\n" + helper).cause == "not_allowed"


def test_a_constant_made_by_a_function_of_the_file_is_shown_where_it_is_made():
    with pytest.raises(
        Unreadable,
        match=r"line 7: `make` is a Python function of your file.*Write the number itself",
    ):
        in_kernel("y = x + SIZE", "\n\ndef make():\n    return 3\nSIZE = tl.constexpr(make())\n")


def test_a_python_helper_is_told_what_it_lacks():
    with pytest.raises(
        Unreadable, match=r"`g` is a Python function of your file.*Put `@triton.jit`"
    ):
        in_kernel("y = g(x)", "\n\ndef g(x):\n    return x\n")


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
    assert "def f(" in in_kernel(
        "y = x", "from triton import jit\nimport triton as t\n", decorator=decorator
    )


@pytest.mark.parametrize(
    "parameters",
    [
        "x_ptr: tl.tensor, n: tl.int32",
        "x_ptr, eps: tl.float32 = 1e-5, N: 'tl.constexpr' = 4",
        "x_ptr, /, n=E",
    ],
)
def test_annotations_and_defaults_are_open(parameters):
    in_kernel("y = x", "E = tl.constexpr(2)\n", parameters)


def test_other_names_of_the_language_are_open():
    text = (
        "from triton import language as T, jit\nfrom triton.language import load, constexpr as"
        " C\n\n\n@jit\ndef f(x_ptr, N: C):\n    T.store(x_ptr, load(x_ptr))\n"
    )
    assert look(text, "kernel") == text


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("y = tl.core.builtins", "is no part of Triton's language"),
        ("y = triton.runtime", "is no part of Triton's language"),
        ("y = tl.inline_asm_elementwise('', '', [x], tl.int32, True, 1)", "past Triton"),
        ("y = x.handle", "has. Is it mistyped?"),
        ("y = x._semantic", "has. Is it mistyped?"),
        ("t = tl", "is a module"),
        ("with x: pass\nlambda: 1", "Triton's compiler knows no such thing"),
        ("a = b = x", "one `=` per statement"),
        ("y = getattr(x, 'core')", "is Python, not Triton"),
        ("tl.load = x", "is assigned to"),
        ("tl = x", "is an import"),
    ],
)
def test_what_reaches_out_of_a_kernel_is_refused(lines, why):
    with pytest.raises(Unreadable) as refused:
        in_kernel(lines)
    assert refused.value.cause == "not_allowed" and why in str(refused.value), str(refused.value)


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
            "y = tl.core.load(x_ptr)\ny = tl.math.fma(x, x, x)\nfor i in tl.range(n):\n    y ="
            " tl.sum(x) + tl.zeros([4], tl.int32)"
        )
        with pytest.raises(Unreadable, match="inline_asm_elementwise"):
            in_kernel("y = tl.inline_asm_elementwise('', '', [x], tl.int32, True, 1)")
    finally:
        scope.restore()


# ---- constants of kernels ------------------------------------------------------------------------


def with_constant(line: str) -> str:
    return HEAD.replace("\n\n\n", f"\n{line}\n\n", 1) + "    x = A\n"


@pytest.mark.parametrize(
    "constant",
    [
        "A = tl.constexpr(open('f'))",
        "A: tl.constexpr = eval('1')",
        "A: tl.constexpr = print",
        "A = tl.constexpr(1, value=print('ran'))",
        "A = tl.constexpr(*print('ran'))",
        "A = tl.constexpr(f'{print(1)}')",
        "A = tl.constexpr((lambda: 1)())",
        "A = tl.constexpr([i for i in ()])",
        "A = tl.constexpr((1).__class__)",
        "A = tl.constexpr(tl.core)",
        "A = tl.constexpr(triton.runtime)",
        "import math; A = tl.constexpr(math.__loader__)",
        "import numpy as np; A = tl.constexpr(np.load('f'))",
        "import os; A = tl.constexpr(os.getpid())",
        "for A in (1, 2): pass",
        "with open('f') as A: pass",
        "class A: pass",
    ],
)
def test_a_constant_is_made_of_numbers(constant):
    refused = refusal(with_constant(constant))
    assert refused.cause == "not_allowed" and "ex.py, line " in str(refused), str(refused)


@pytest.mark.parametrize(
    "constant",
    [
        "A = tl.constexpr(1e-5)",
        "A: tl.constexpr = 1e-5",
        "A = tl.constexpr(-(2**10) + 1)",
        "A = tl.constexpr('s')",
        "A = tl.constexpr(tl.float32)",
        "B = 4; A = tl.constexpr(2 * B)",
        "import math; A = tl.constexpr(math.log2(math.e))",
        "import numpy as np; A = tl.constexpr(np.pi)",
        "A = tl.constexpr(float('inf'))",
        "A = tl.constexpr(triton.next_power_of_2(100))",
        "A = tl.constexpr(1 if 2 > 1 else 0)",
        "_, A = 1, tl.constexpr(2)",
        "A = tl.constexpr((1, 2))",
        "A = tl.constexpr(max([1, 2]))",
        "A = tl.constexpr(sum(sorted((2, 1))))",
        "A = tl.constexpr(tuple(list((1, 2))))",
    ],
)
def test_a_constant_goes_along_at_its_line(constant):
    source = taken(with_constant(constant))
    assert source.splitlines()[2].endswith(constant.rpartition("; ")[2])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return a * 2 + math.floor(2.5)", ""),
        ("total = 0\n    for i in range(a):\n        total += i\n    return total", ""),
        ("return open(a)", "is Python, not Triton"),
        ("import os\n    return a", "is not possible here"),
        ("return a.__class__", "is not something that a constant"),
        ("a.value = 3\n    return a", "is assigned to"),
        ("return math.__loader__", "is no number"),
        ("with a: return a", "is not possible here"),
        ("class B: pass\n    return a", "is not possible here"),
        ("a[0] += 1\n    return a[0]", "compiles a kernel once, for all programs"),
        ("for a[0] in range(3): pass\n    return a[0]", "compiles a kernel once"),
        ("[[b]] = [a]\n    b[0] = 1\n    return b[0]", "compiles a kernel once"),
        ("b = a\n    b[0] = 1\n    return b[0]", "compiles a kernel once"),
        ("return len(f'{tl.load}')", "`tl.load` is not possible here"),
        ("return tl.cdiv(a, 2) if tl.float32 == a else 1", ""),
        ("b = [a] * 3\n    b[0] = 1\n    return b[0]", ""),
        ("b = [i for i in range(a)]\n    b[0], c = 1, 2\n    return b[0]", ""),
    ],
)
def test_a_function_of_constants_only_calculates(body, says):
    text = (
        f"import math\n{HEADS['kernel']}\n\n@triton.constexpr_function\ndef g(a):\n    {body}\n\n\n"
        + HEAD[HEAD.index("@") :]
    )
    text += "    x = tl.zeros([g(BLOCK)], tl.float32)\n"
    if says:
        assert says in str(refusal(text))
    else:
        assert "def g(a)" in taken(text)


@pytest.mark.parametrize(
    ("code", "default"),
    [
        ("[0]", True),
        ("([0],)", True),
        ("[0] * 4", True),
        ("list((0,))", True),
        ("list", True),
        ("enumerate((0, 1, 2))", False),
        ("zip((0, 1), (2, 3))", False),
        ("max([0], [1])", True),
        ("tuple([[0], [1]])", True),
        ("tl.tuple((0,))", True),
        ("tl.constexpr([0])", False),
        ("triton.language.core.tuple", False),
    ],
)
@pytest.mark.parametrize("decorator", ["@triton.constexpr_function", "@triton.jit"])
def test_no_state_is_kept_between_programs(code, default, decorator):
    """The interpreter would change it in every program; a compiler knows it once, before any."""
    kernel = HEAD[HEAD.index("@") :] + "    x = tl.zeros([draw(BLOCK)], tl.float32)\n"
    function = f"\n\n{decorator}\ndef draw(B, box=%s):\n    box += (1,)\n    return 1\n\n\n"
    files = [f"{HEADS['kernel']}\n\nA = {code}\n{function % 'A'}{kernel}"]
    if default:
        files.append(f"{HEADS['kernel']}{function % code}{kernel}")
    for text in files:
        refused = refusal(text)
        assert refused.cause == "not_allowed", refused
        assert "can change" in str(refused) and "for all programs" in str(refused), refused


def test_a_constant_is_not_made_by_a_function_of_the_file():
    """What such a function returns may be a list, which keeps state."""
    text = HEADS["kernel"] + "\n\n@triton.constexpr_function\ndef make():\n    return [0]\n\n\n"
    text += "A = make()\n\n\n" + HEAD[HEAD.index("@") :] + "    x = A\n"
    assert "the check runs none to make a constant" in str(refusal(text))


@pytest.mark.parametrize(
    "line",
    [
        "A = tl.constexpr(1); import os; os.abort()",
        "import os; os.abort(); A = tl.constexpr(1)",
        "A = tl.constexpr(1); print('ran'); B = tl.constexpr(2)",
    ],
)
def test_what_shares_a_line_with_a_constant_stays_behind(line):
    source = taken(with_constant(line).replace("x = A", "x = A + B" if "B" in line else "x = A"))
    kinds = {type(node).__name__ for node in ast.parse(source).body}
    assert (
        kinds == {"Import", "Assign", "FunctionDef"}
        and "os" not in source
        and "print" not in source
    )
    assert ("B = tl.constexpr(2)" in source) == ("B" in line)


ALLOWED = [
    "x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)",
    "for i in range(0, n, BLOCK): x = i",
    "for i in tl.static_range(4): x = i",
    "for i in tl.range(0, n, num_stages=2): x = i",
    "while n > 0: n -= 1",
    "if n > 1:\n        x = 1\n    elif n > 0:\n        x = 2\n    else:\n        x = 3",
    "x = 1 if n > 0 else 2",
    "x = (offsets < n)[:, None] & (offsets >= 0)[None, :]",
    "print('offsets', n)",
    "tl.device_print('x', offsets)",
    "tl.static_print(f'BLOCK is {BLOCK:>10}')",
    "tl.static_assert(BLOCK > 1, 'too small')",
    "assert n > 0, 'empty'",
    "x = tl.math.exp(n) + tl.exp2(n) + tl.math.rsqrt(n)",
    "x = triton.cdiv(n, BLOCK) + tl.cdiv(n, BLOCK) + triton.next_power_of_2(BLOCK)",
    "x = triton.language.zeros([BLOCK], dtype=triton.language.float32)",
    "x: tl.constexpr = 4",
    "x, y = n, n + 1",
    "x = min(n, max(1, 2)) + abs(-1) + int(2.5) + float(1)",
    "x = y_ptr.dtype.element_ty",
    "x = offsets.shape[0]",
    "x = tl.sum(offsets, axis=0) if BLOCK else None",
    "x_ptr += n.to(tl.int64)",
    "x = tl.program_id(axis=0) * tl.num_programs(0)",
    "x = not (n and True or False)",
    "x = helper(offsets) + SCALE + SHIFT",
    "x = tl.reduce(offsets, 0, helper2)",
    "'''a docstring in the middle'''",
    "# only a comment, with open() and __class__\n    pass",
    "return",
]
AROUND = """
SCALE = tl.constexpr(2.0)
SHIFT: tl.constexpr = 3
NOT_USED = {"a": [i for i in range(3)]}


@triton.jit
def helper(x):
    '''A helper.'''
    return x * SCALE


@triton.jit
def helper2(a, b):
    return a + b


def launch(x):  # not a kernel: it stays behind, whatever it does
    import os
    return os.getcwd()


class AlsoNot:
    pass


if __name__ == "__main__":
    launch(open("f"))
"""


@pytest.mark.parametrize("line", ALLOWED)
def test_what_a_kernel_needs_is_allowed(line):
    source = taken(with_body(line) + AROUND)
    assert "launch" not in source and "NOT_USED" not in source and "AlsoNot" not in source


@pytest.mark.parametrize("file", sorted(paths.SOLUTIONS.glob("ex*.py")), ids=lambda f: f.stem)
def test_code_stands_at_its_own_lines(file):
    text = file.read_text()
    exercise = next(e for e in catalog.exercises().values() if e.file == file.stem)
    kernels = attempt.read_attempt(exercise, texts.make_unsolved_text(exercise), text, file.name)
    assert kernels is not None
    source = kernels.source
    original, kept = text.splitlines(), source.splitlines()
    assert not "".join(kept[len(original) :])
    assert all(
        line in ("", original[number])
        for number, line in enumerate(kept[: len(original)])
        if number
    )


@pytest.mark.parametrize("character", ["\x0c", "\u2028", "\u2029", "\x85", "\x1c", "\x0b"])
@pytest.mark.parametrize("where", ["comment", "docstring"])
def test_a_character_that_only_python_strings_take_for_a_line_end_moves_nothing(character, where):
    before = (
        f"# copied{character}from a page\n"
        if where == "comment"
        else f'"""copied{character}from a page"""\n'
    )
    source = taken(before + with_body("x = 1"))
    (kernel,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert kernel.lineno == 7 and ast.unparse(kernel.body[-1]) == "x = 1"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "",
                "# ü",
                "A = tl.constexpr(1)",
                "x = '''a\nb'''",
                "import os",
                "\x0c",
                "def f(): pass",
            ]
        ),
        max_size=12,
    )
)
def test_lines_are_kept_whatever_stands_before(lines):
    text = "\n".join(["import triton", *lines, with_body("x = 1")])
    want = next(
        n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == "kernel"
    )
    (got,) = [n for n in ast.parse(taken(text)).body if isinstance(n, ast.FunctionDef)]
    assert (got.lineno, got.end_lineno, ast.dump(got)) == (
        want.lineno,
        want.end_lineno,
        ast.dump(want),
    )


def test_an_exception_is_reported_at_the_line_of_the_learners_file(tmp_path):
    exercise = catalog.get("00a")
    text = texts.read_solution(exercise)
    text = "# a note\n" * (39 - text[: text.index("    mask = ")].count("\n")) + text.replace(
        "    mask = ", "    tl.static_assert(False, 'here')\n    mask = "
    )
    assert text.splitlines()[39] == "    tl.static_assert(False, 'here')"
    file = tmp_path / "mine.py"
    file.write_text(text)
    verdict = check(exercise, file)
    assert (verdict.status, verdict.cause) == (
        "fail",
        "kernel_raised",
    ) and "mine.py, line 40" in verdict.message


# ---- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            HEAD.replace("kernel(", "kernle(") + "    pass\n",
            "no kernel named `kernel`; it has `kernle`",
        ),
        (
            HEAD.replace("@triton.jit\n", "") + "    pass\n",
            "line 5: `kernel` has lost its decorator",
        ),
        ("import triton\n", "no @triton.jit function at all"),
        ("", "no @triton.jit function at all"),
        (
            HEAD.replace("@triton.jit\n", "") + "    pass\nkernel = triton.jit(kernel)\n",
            "has lost its decorator",
        ),
        (
            "if True:\n    " + HEAD[HEAD.index("@") :].replace("\n", "\n    ") + "    pass\n",
            "no kernel named",
        ),
    ],
)
def test_a_kernel_that_is_not_there(text, says):
    refused = refusal(text)
    assert refused.cause == "no_kernel" and says in str(refused)


@pytest.mark.parametrize(
    "line",
    [
        "import numpyy",
        "from numpyy import zeros",
        "import numpyy.linalg",
        "from . import helpers",
        "def f():\n    import numpyy",
    ],
)
def test_an_import_that_fails_is_named_with_its_line(line):
    with pytest.raises(Unreadable) as raised:
        check_imports(ast.parse(f"{line}\n"), "ex.py", "remove the line")
    refused = raised.value
    assert (
        refused.cause == "import_fails"
        and f"line {line.count(chr(10)) + 1}:" in str(refused)
        and "remove the line" in str(refused)
    )


@pytest.mark.parametrize(
    "line",
    [
        "import os, sys",
        "import numpy as np",
        "from __future__ import annotations",
        "import __main__",
        "import course_lib",
    ],
)
def test_an_import_that_works_does_no_harm(line):
    assert (
        line not in taken(f"{line}\n" + with_body("x = 1")).splitlines()[0] or "__future__" in line
    )


@pytest.mark.parametrize(
    "body",
    [
        "x = " + "+".join(["1"] * 2000),
        "x = " + "-" * 3000 + "1",
        "x = " + "(" * 250 + "1" + ")" * 250,
        "x = n" + ".T" * 2500,
    ],
    ids=["sum", "signs", "parentheses", "attributes"],
)
def test_what_is_nested_too_deeply_is_said_and_never_ours(body):
    with pytest.raises(Unreadable, match=r"nested too deeply|too many nested"):
        taken(with_body(body))


# ---- nothing done yet ----------------------------------------------------------------------------


def test_comments_docstrings_imports_layout_and_pass_are_no_attempt():
    exercise = catalog.get("00a")
    unsolved = texts.make_unsolved_text(exercise)
    dressed = f'"""Notes."""\nimport os\n{unsolved}\n# a note\nA = 1\n\n\ndef launch():\n    pass\n'
    assert attempt.read_attempt(exercise, unsolved, dressed, "ex.py") is None
    begun = unsolved.replace("BLOCK: tl.constexpr", "BLOCK")
    assert (
        begun != unsolved and attempt.read_attempt(exercise, unsolved, begun, "ex.py") is not None
    )


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", b"a = 1\nb = 2\n", b"a = 1\rb = 2\r"]
)
def test_marks_and_line_ends_of_other_systems_are_read(tmp_path, data):
    (tmp_path / "ex.py").write_bytes(data)
    assert [ast.unparse(node) for node in ast.parse(read_text(tmp_path / "ex.py")).body] == [
        "a = 1",
        "b = 2",
    ]


def test_the_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "ex.py").write_bytes("a = 1\n# Lösung\n".encode("latin-1"))
    with pytest.raises(Unreadable, match="byte 0xf6 in line 2"):
        read_text(tmp_path / "ex.py")


def test_text_around_a_kernel_is_no_reason_to_fail():
    text = textwrap.dedent("""
        async def kernel_later(): pass
        type_of = type(1)
        """)
    assert "type_of" not in taken(with_body("x = 1") + text)


# ---- functions -----------------------------------------------------------------------------------

OPEN = {
    "torch": [
        "with torch.no_grad():\n    y = x.detach()",
        (
            "import os, sys, logging, random\nprint(dir(x), type(x), sys.version, os.getcwd(),"
            " random.random())"
        ),
        "y = x.numpy() + torch.from_numpy(x.numpy()).numpy()",
        "match x:\n    case torch.Tensor(shape=s): y = s",
        "y = open('notes.txt', 'w')",
        "torch.sum = max",
        "y = '{0.shape}'.format(x)",
        "from math import *\ny = sqrt(2)",
        "y = x.__class__.__mro__ or __name__ or globals()",
        "y = torch.no_grad() and x.requires_grad",
    ],
    "numpy": [
        "y = np.ndarray((3,), buffer=x) + np.asarray(x)",
        "import torch\ny = torch.ones(3).numpy()",
        "y = np.lib.stride_tricks.as_strided(x, (9,), (1,))",
    ],
}


@pytest.mark.parametrize(
    ("kind", "lines"), [(kind, lines) for kind in OPEN for lines in OPEN[kind]]
)
def test_a_function_may_use_all_of_python(kind, lines):
    if lines.startswith("from math"):
        look(f"from math import *\n{HEADS[kind]}\n\ndef f(x, w):\n    return sqrt(2)\n", kind)
    else:
        in_function(lines, kind, {"var": "a reason", "grad": "another"})


@pytest.mark.parametrize(
    "expression",
    [
        "torch.var_mean(x)",
        "x.var()",
        "torch.Tensor.var(x)",
        "torch.std(x)",
        "x.std",
        "getattr(x, 'var')()",
        "statistics.covariance(x, x)",
        "statistics.linear_regression(x, x)",
        "statistics.NormalDist.from_samples(x)",
        "torch.native_layer_norm(x, (3,), None, None, 0.0)[2]",
        "torch.batch_norm_stats(x, 0.0)",
        "F.batch_norm(x, w, w, training=True)",
        "nn.LazyBatchNorm1d()",
        "nn.InstanceNorm1d(3)",
        "torch._fused_rms_norm(x, (3,))",
    ],
)
def test_a_shortcut_is_held_in_every_form(expression):
    lines = f"import statistics\ny = {expression}"
    with pytest.raises(Unreadable, match=r"is a shortcut that this exercise forbids: a reason\."):
        in_function(lines, "torch", {"var": "a reason"})
    in_function(lines, "torch")


def test_a_norm_of_numbers_is_no_shortcut():
    lines = "y = torch.linalg.vector_norm(x)\ny = x.norm()\ny = F.normalize(x)"
    in_function(lines, "torch", {"var": "a reason", "layer_norm": "a reason"})


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
        "torch.batch_norm_stats",
        "nn.LazyInstanceNorm1d",
    ],
)
def test_the_whole_answer_is_held_in_every_form(expression):
    with pytest.raises(Unreadable, match=r"line 7: .* is a shortcut that this exercise forbids"):
        in_function(f"y = {expression}", "torch", dict(catalog.get("01a").forbidden))


def verdict_on(exercise_id: str, text: str, tmp_path) -> Verdict:
    file = tmp_path / "mine.py"
    file.write_text(text)
    return check(catalog.get(exercise_id), file)


def test_an_operation_put_together_is_refused_and_no_except_hides_it(tmp_path):
    text = texts.read_solution(catalog.get("01a")).replace(
        "    return y.to(x.dtype)\n",
        "    try:\n        getattr(torch.nn.functional, 'layer' + '_norm')(x, x.shape[-1:])\n   "
        " except BaseException:\n        pass\n    return y.to(x.dtype)\n",
    )
    verdict = verdict_on("01a", text, tmp_path)
    assert (verdict.status, verdict.cause) == ("error", "not_allowed"), verdict.message
    assert "is a shortcut that this exercise forbids" in verdict.message
    assert verdict.place is not None and verdict.place.source.strip().startswith(
        "getattr(torch.nn.functional"
    )


def test_a_refusal_is_told_with_hidden_cases_too(tmp_path):
    text = texts.read_solution(catalog.get("01a")).replace(
        "    wide = ", "    torch.layer_norm(x, (3,))\n    wide = "
    )
    (tmp_path / "mine.py").write_text(text)
    verdict = check(catalog.get("01a"), tmp_path / "mine.py", secret="a")
    assert verdict.cause == "not_allowed" and "`torch.layer_norm` is a shortcut" in verdict.message


def test_an_attribute_of_ones_own_may_have_a_forbidden_name(tmp_path):
    text = texts.read_solution(catalog.get("03a")).replace(
        "    return mean, var\n\n\ndef two",
        "    s = S(mean, var)\n    return s.mean, s.var\n\n\ndef two",
    )
    text = text.replace(
        "import numpy as np\n",
        "from typing import NamedTuple\n\nimport numpy as np\n\n\nclass S(NamedTuple):\n    mean:"
        " np.ndarray\n    var: np.ndarray\n",
    )
    verdict = verdict_on("03a", text, tmp_path)
    assert verdict.passed, verdict.message


def test_only_what_is_needed_goes_on_each_line_at_its_number():
    text = (
        "import torch, os\nimport numpyy.not_needed\nprint('hello')\nEPS = 1e-5; SECRET ="
        " open('/etc/hostname')\nTABLE = {}\n\n\ndef f(x):\n    return old(x) if 0 else g(x) +"
        " TABLE['a']\n\n\ndef g(x):\n    return x + EPS\n\n\ndef f_before(x):\n    return"
        " os.getcwd()\n\n\nTABLE['a'] = 1\nTABLE.update(b=2)\nassert f(torch.ones(1)) == 3\nif"
        " __name__ == '__main__':\n    old = 3\n"
    )
    cut = (
        needed.cut(parse(text, "ex.py"), "ex.py", ("f",), find_kind("torch"))
        .write(text)
        .splitlines()
    )
    kept = {number: line for number, line in enumerate(cut, 1) if line.strip()}
    assert (
        kept[4] == "EPS = 1e-05"
        and kept[5] == "TABLE = {}"
        and kept[8] == "def f(x):"
        and kept[13] == "    return x + EPS"
    )
    assert kept[20] == "TABLE['a'] = 1" and kept[21] == "TABLE.update(b=2)" and max(kept) == 21
    assert not any(
        word in line
        for line in kept.values()
        for word in ("print", "SECRET", "getcwd", "numpyy", "import")
    )


def test_of_two_functions_of_one_name_the_last_one_counts():
    text = "import torch\n\n\ndef f(x):\n    return nothing(x)\n\n\ndef f(x):\n    return x\n"
    assert "nothing" not in look(text, "torch") and look(text, "torch").count("def f") == 1


def test_an_old_kernel_is_not_looked_at():
    old = "\n\n@triton.autotune([], [])\n@triton.jit\ndef before(x):\n    os.abort()\n"
    assert "before" not in in_kernel("y = x", old)


def test_methods_that_need_no_object_are_called_by_their_names():
    text = (
        "import torch\n\n\nclass N(torch.autograd.Function):\n    @staticmethod\n    def f(x):"
        " return x\n    @staticmethod\n    def g(x): return x\n"
    )
    assert look(text, "torch", ("f", "g")).rstrip().endswith("f, g = N.f, N.g")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "class A:\n    def f(self, x): return x\n",
            "line 2: `f` is a method of `A`, and takes self",
        ),
        ("class A:\n    def g(x): return x\n", "has no function named `f`; it has the class `A`"),
        ("def g(x): return x\n", "it has `g`"),
        ("x = 1\n", "it has no function at all"),
    ],
)
def test_a_function_that_is_not_there(text, says):
    with pytest.raises(Unreadable) as refused:
        look(text, "torch")
    assert refused.value.cause == "no_function" and says in str(refused.value)


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "after"),
    [("total =", "="), ("total = x +  # the rest", "+"), ("total += ", "+="), ("if x and", "and")],
)
def test_a_line_that_is_not_finished_is_said_to_be(line, after):
    with pytest.raises(Unreadable, match="line 2: this line is not finished") as refused:
        parse(f"x = 1\n{line}\ny = 2\n", "ex.py")
    assert refused.value.cause == "syntax_error" and f"nothing stands after `{after}`" in str(
        refused.value
    )


def test_a_function_that_returns_nothing_is_shown_at_its_first_line(tmp_path):
    text = texts.read_solution(catalog.get("01a"))
    verdict = verdict_on("01a", text.replace("    return y.to(x.dtype)\n", ""), tmp_path)
    assert verdict.cause == "wrong_return" and verdict.place.source.startswith("def layer_norm(")


# ---- what an instructor may want to look at ------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import gc", "imports `gc`"),
        ("from threading import Thread", "imports `threading`"),
        ("from torch.utils._python_dispatch import _disable_current_modes", "dispatcher"),
        ("x = torch._C", "dispatcher"),
        ("x = x.numpy()", "dispatcher"),
        ("x = f.__globals__", "insides"),
        ("eval('1')", "`eval`"),
        ("x = getattr(x, 'a' + 'b')", "`getattr`"),
        ("x = map(getattr, [x], ['a' + 'b'])", "`getattr`"),
        ("import operator", "imports `operator`"),
        ("x = torch.__dict__['a' + 'b']", "insides"),
        ("x = torch.utils.data.dataloader.threading", "insides of a library"),
        ("x = torch._subclasses.fake_tensor", "insides of a library"),
        ("from numpy._core._methods import _mean", "insides of a library"),
        ("from torch.utils import no_dispatch", "dispatcher"),
        # a name is resolved while the function runs
        ("import logging.config", "finds code by its name"),
        ("from logging.config import BaseConfigurator", "finds code by its name"),
        ("x = BaseConfigurator({}).resolve('torch' + '.x')", "finds code by its name"),
        ("x = typing.get_type_hints(f)", "finds code by its name"),
        ("from typing import get_type_hints", "finds code by its name"),
        ("x = typing.ForwardRef('x')", "finds code by its name"),
        ("x = typing_extensions.evaluate_forward_ref(x)", "finds code by its name"),
        ("from numpy.testing import measure", "finds code by its name"),
        ("import torch.utils._pytree", "insides of a library"),
        ("x = np.testing.runstring('x', {})", "finds code by its name"),
        ("x = torch.fx.GraphModule(x, x)", "finds code by its name"),
        ("x = Formatter().get_field('0.a', x, {})", "finds code by its name"),
        ("x = torch.string", "insides of a library"),
        ("x = torch.importlib", "insides of a library"),
        ("x = torch.runpy", "insides of a library"),
        ("x = __loader__.source_to_code(b'1', 'x')", "`__loader__`"),
        ("x = enum.bltns", "insides of a library"),
        ("x = x.ctypes._ctypes", "insides of a library"),
        ("u = torch.utils; x = u.data.dataloader.threading", "insides of a library"),
        ("t = torch; x = t.load('f')", "makes objects out of bytes"),
        ("e = enum; x = e.bltns", "insides of a library"),
        ("functools.update_wrapper(f, f, ('a' + 'b',))", "finds code by its name"),
        ("x = dataclasses.make_dataclass('D', ['a' + 'b'])", "finds code by its name"),
        ("x = torch.jit.annotations.parse_type_line('x', f, 1)", "finds code by its name"),
        ("x = torch.overrides", "finds code by its name"),
        # an annotation is evaluated
        ("x: 'eval(1)' = x", "annotation"),
        ("x: print(1) = x", "annotation"),
        ("def g(x: 'f(x)' = 1): pass", "annotation"),
        ("x = f.__annotations__", "insides"),
        ("x = f.__annotate__", "insides"),
        # an object is made out of bytes
        ("x = torch.load('f')", "makes objects out of bytes"),
        ("from torch import load", "makes objects out of bytes"),
        ("x = np.load('f', allow_pickle=True)", "makes objects out of bytes"),
        ("x = g(allow_pickle=True)", "makes objects out of bytes"),
        ("x = np.lib.format.read_array('f')", "makes objects out of bytes"),
        ("x.__setstate__(1)", "makes objects out of bytes"),
        ("x = x.__reduce__()", "makes objects out of bytes"),
        ("def __reduce__(self): return f, ()", "makes objects out of bytes"),
        # a thread is started: PyTorch's dispatcher watches one
        ("import concurrent.futures", "imports `concurrent`"),
        ("from logging.handlers import QueueListener", "another thread"),
        ("x = torch.multiprocessing.pool.ThreadPool(1)", "another thread"),
        ("x = torch.nn.parallel.parallel_apply([f], [x])", "another thread"),
        ("x = torch.nn.DataParallel(f)", "another thread"),
        ("x = torch.utils.data.DataLoader(x)", "another thread"),
        ("x = torch.jit.fork(f, x)", "another thread"),
    ],
)
def test_an_odd_line_is_noted(line, says):
    heads = (
        "import dataclasses, enum, functools, torch, typing, typing_extensions; import numpy as np"
    )
    (oddity,) = oddities.find_oddities(
        parse(f"{heads}\n\n\ndef f(x):\n    {line}\n    return x\n", "ex.py").body
    )
    assert oddity.line == 5 and says in oddity.words


def test_a_pattern_that_matches_by_position_is_noted():
    text = "def f(x):\n    match x:\n        case int(n):\n            pass\n        case C(n):\n"
    (oddity,) = oddities.find_oddities(parse(f"{text}            return n\n", "ex.py").body)
    assert oddity.line == 5 and "looks up names" in oddity.words


@pytest.mark.parametrize(
    "line",
    [
        "x = np.copy(torch.select(x, 0, 1)) + np.trace(x) + torch.trace(x) + np.array([1])",
        "x = np.random.default_rng(0).normal(size=3)",
        "x = torch.signal.windows.hann(4)",
        "from collections.abc import Sequence",
        "x: 'np.ndarray | None' = x",
        "x: 'Callable[[int, float], tuple[torch.Tensor, ...]]' = x",
        "x: typing.Literal['a', 1] = x",
        "def g(x: 'the row') -> 'a sentence, not code': return x",
        "x = np.lib.stride_tricks.sliding_window_view(x, 2)",
        "from torch.utils.checkpoint import checkpoint",
        "logging.getLogger('course').info('x')",
        "x = g.load(x).format(x)",
        "x = x._replace(mean=1)",
        "x = logging.DEBUG + typing.cast(int, x)",
        "F = torch.nn.functional; x = F.relu(x)",
    ],
)
def test_a_usual_line_is_not_odd(line):
    heads = "import torch, typing, logging; import numpy as np"
    assert not oddities.find_oddities(
        parse(f"{heads}\n\n\ndef f(x):\n    {line}\n    return x\n", "ex.py").body
    )


@pytest.mark.parametrize("file", sorted(paths.SOLUTIONS.glob("ex*.py")), ids=lambda f: f.stem)
def test_a_solution_is_not_odd(file):
    exercise = next(e for e in catalog.exercises().values() if e.file == file.stem)
    kernels = attempt.read_attempt(
        exercise, texts.make_unsolved_text(exercise), file.read_text(), file.name
    )
    assert kernels is not None and kernels.oddities == () and kernels.rest == ""


@pytest.mark.parametrize("decorator", ["@(\n    triton.jit\n)\n", "@\\\n    triton.jit\n"])
def test_a_decorator_may_begin_below_its_at(decorator):
    text = with_body("tl.store(y_ptr + offsets, 1.0)").replace("@triton.jit\n", decorator)
    assert "@triton.jit\ndef kernel" in taken(text)


ENDLESS = "\nprint('begun')\nwhile True:\n    pass\n"


@pytest.mark.parametrize(
    ("exercise", "code", "says"),
    [
        ("03a", ENDLESS, "did not end within 3 s"),
        ("00a", ENDLESS, "did not end within 3 s"),
        ("03a", "\nimport os\nwhile True:\n    os.fork()\n", "asked for what the sandbox refuses"),
        ("03a", "\nimport os\nos._exit(3)\n", "ended its own process"),
        ("03a", "\nprint(1 / 0)\n", "raises ZeroDivisionError when the file is imported"),
        ("00a", "\nexit(1)\n", "raises SystemExit when the file is imported"),
        ("03a", "\nif __name__ == '__main__':\n    while True: pass\n", ""),
    ],
)
@pytest.mark.skipif(course_lib.MODE != "cpu", reason="a compiled kernel has the same rest")
def test_the_code_beside_the_entry_points_is_run_once_and_said(exercise, code, says, tmp_path):
    text = texts.read_solution(catalog.get(exercise))
    verdict = verdict_on(exercise, text + code, tmp_path)
    assert verdict.passed, verdict.message
    assert (says in verdict.message) and bool(verdict.oddities) == bool(says)
    if says:
        assert says in verdict.oddities[0].words and verdict.oddities[0].line > text.count("\n")
        assert verdict.oddities[0].for_author


RIGHT_FUNCTIONS = [
    pytest.param(exercise, file, id=f"{exercise.id}-{file.stem}")
    for exercise in catalog.exercises().values()
    if exercise.kind != "kernel"
    for file in (*exercise.list_right_ways(), *sorted((exercise.folder / "unusual").glob("*.py")))
]


@pytest.mark.parametrize(("exercise", "file"), RIGHT_FUNCTIONS)
def test_right_code_is_seldom_odd(exercise, file):
    """What a few of these use goes past PyTorch's dispatcher, and is listed for that."""
    text = file.read_text()
    cut = needed.cut(
        parse(text, "ex.py"), "ex.py", exercise.entry_points, find_kind(exercise.kind)
    ).statements
    words = " ".join(oddity.words for oddity in oddities.find_oddities(cut))
    assert not words or "dispatcher" in words, words
