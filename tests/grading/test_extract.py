"""Taking kernels out of a file: what is refused, with its line, what is not, and what reaches the child."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.submission import attempt
from course_lib.grading.submission.extract_kernels import Unreadable, extract, fingerprint, read_text

HEAD = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
)
FIRST = HEAD.count("\n") + 1  # the number of the first line of the body


def taken(text: str):
    return extract(text, "ex.py", ("kernel",))


def with_body(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in ("offsets = tl.arange(0, BLOCK)", *lines))


def refusal(text: str) -> Unreadable:
    with pytest.raises(Unreadable) as refused:
        taken(text)
    return refused.value


# ---- inside a kernel ---------------------------------------------------------------------------------------------------

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
    "global": "global n",
    "nonlocal": "nonlocal n",
    "del": "del n",
    "raise": "raise ValueError",
    "match": "match n:\n        case 1: x = 1",
    "a list comprehension": "x = [i for i in range(3)]",
    "a generator": "x = sum(i for i in range(3))",
    "a dict": "x = {1: 2}",
    "a set": "x = {1, 2}",
    "a walrus": "if (x := n): pass",
    "yield": "yield n",
    "await": "await n",
    "a nested function": "def inner(): pass",
    "tl.core": "x = tl.core.load(x_ptr)",
    "tl.extra": "x = tl.extra.cuda.libdevice.rsqrt(n)",
    "triton.language.core": "x = triton.language.core",
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
    number = FIRST + 1 + line.startswith("t = tl")  # there the second line is the one that is refused
    assert refused.cause == "not_allowed" and f"ex.py, line {number}:" in str(refused), str(refused)


def test_the_builtins_are_not_there():
    assert "`__builtins__`" in str(refusal(with_body("x = __builtins__")))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("x_ptr, *rest", "takes \\* or \\*\\*"),
        ("x_ptr, **rest", "takes \\* or \\*\\*"),
        ("x_ptr, *, n", "takes \\* or \\*\\*"),
        ("x_ptr: print('ran')", "annotated with"),
        ("x_ptr: int", "annotated with"),
        ("x_ptr, n=open('f')", "default"),
        ("x_ptr, n=9**9**9", "default"),
        ("x_ptr, n=tl.core", "default"),
        ("x_ptr) -> (print('ran')", "declares what it returns"),
    ],
)
def test_a_signature_that_runs_code_or_is_no_kernels_is_refused(parameters, says):
    with pytest.raises(Unreadable, match=f"line 6: .*{says}"):
        taken(HEAD.replace("x_ptr, y_ptr, n, BLOCK: tl.constexpr", parameters) + "    pass\n")


@pytest.mark.parametrize(
    "decorators",
    [
        "@triton.autotune(configs=[], key=[])\n@triton.jit",
        "@triton.heuristics({})\n@triton.jit",
        "@print\n@triton.jit",
        "@triton.jit\n@print",
        "@triton.jit(do_not_specialize=[open('f')])",
        "@jit",
    ],
)
def test_other_decorators_are_refused(decorators):
    refused = refusal(with_body("x = 1").replace("@triton.jit", decorators))
    assert refused.cause == "not_allowed" and "keep `@triton.jit`, and remove the others" in str(refused)


def test_an_undefined_name_is_named_with_its_line():
    refused = refusal(with_body("x = tl.load(x_ptr + offsets)", "tl.store(y_ptr + offset, x)"))
    assert refused.cause == "undefined_name" and f"line {FIRST + 2}: `offset` is used" in str(refused)


@pytest.mark.parametrize("name", ["np", "torch", "os"])
def test_a_module_that_was_never_imported_is_undefined(name):
    refused = refusal(with_body(f"x = {name}.zeros(3)"))
    assert refused.cause == "undefined_name" and f"line {FIRST + 1}: `{name}` is used" in str(refused)


def test_an_import_is_named_and_not_its_attribute():
    refused = refusal(HEAD.replace("\n\n\n", "\nimport numpy as np\n\n", 1) + "    x = np.linalg.norm(n)\n")
    assert refused.cause == "not_allowed" and f"line {FIRST}: `np` is an import" in str(refused)


def test_a_plain_global_is_told_how_to_become_a_constant():
    refused = refusal(
        "import triton\nimport triton.language as tl\nEPS = 1e-5\n" + HEAD[HEAD.index("\n\n@") :] + "    x = EPS\n"
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


# ---- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constant",
    [
        "A = tl.constexpr(open('f'))",
        "A: tl.constexpr = open('f')",
        "A: tl.constexpr = eval('1')",
        "A: tl.constexpr = print",
        "A = tl.constexpr(1, print('ran'))",
        "A = tl.constexpr(1, value=print('ran'))",
        "A = tl.constexpr(value=print('ran'))",
        "A = tl.constexpr(*print('ran'))",
        "A = tl.constexpr([1, 2])",
        "A = tl.constexpr(f'{print(1)}')",
        "A = tl.constexpr(9**9**9)",
        "A = tl.constexpr(1 << 10**9)",
        "A = tl.constexpr((9**1000)**1000)",
        "A = tl.constexpr(B)",
    ],
)
def test_a_constant_is_a_literal(constant):
    refused = refusal(HEAD.replace("\n\n\n", f"\n{constant}\n\n", 1) + "    x = A\n")
    assert refused.cause == "not_allowed" and "line 3: a constant for a kernel must be a plain number" in str(refused)


@pytest.mark.parametrize(
    "constant",
    [
        "A = tl.constexpr(1e-5)",
        "A: tl.constexpr = 1e-5",
        "A: tl.constexpr = tl.constexpr(2)",
        "A = tl.constexpr(-(2**10) + 1)",
        "A = tl.constexpr('s')",
    ],
)
def test_both_spellings_of_a_constant_go_along_at_their_line(constant):
    source = taken(HEAD.replace("\n\n\n", f"\n{constant}\n\n", 1) + "    x = A\n").source
    assert ast.dump(ast.parse(source).body[2]) == ast.dump(ast.parse(constant).body[0])
    assert ast.parse(source).body[2].lineno == 3


@pytest.mark.parametrize(
    "line",
    [
        "A = tl.constexpr(1); import os; os.abort()",
        "import os; os.abort(); A = tl.constexpr(1)",
        "A = tl.constexpr(1); print('ran'); B = tl.constexpr(2)",
    ],
)
def test_what_shares_a_line_with_a_constant_stays_behind(line):
    source = taken(HEAD.replace("\n\n\n", f"\n{line}\n\n", 1) + "    x = A\n").source
    kinds = {type(node).__name__ for node in ast.parse(source).body}
    assert kinds == {"Import", "Assign", "FunctionDef"} and "os" not in source and "print" not in source
    assert ("B = tl.constexpr(2)" in source) == ("B" in line)


# ---- what is fine ------------------------------------------------------------------------------------------------------

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
    kernels = taken(with_body(line) + AROUND)
    assert kernels.names == ("kernel", "helper", "helper2")
    assert "launch" not in kernels.source and "NOT_USED" not in kernels.source and "AlsoNot" not in kernels.source


@pytest.mark.parametrize("file", sorted(paths.SOLUTIONS.glob("ex*.py")), ids=lambda f: f.stem)
def test_code_stands_at_its_own_lines(file):
    text = file.read_text()
    exercise = next(e for e in catalog.exercises().values() if e.file == file.stem)
    source = attempt.extract(exercise, text, file.name).source
    original, kept = text.splitlines(), source.splitlines()
    assert not "".join(kept[len(original) :])
    assert all(line in ("", original[number]) for number, line in enumerate(kept[: len(original)]) if number)


@pytest.mark.parametrize("character", ["\x0c", "\u2028", "\u2029", "\x85", "\x1c", "\x0b"])
@pytest.mark.parametrize("where", ["comment", "docstring"])
def test_a_character_that_only_python_strings_take_for_a_line_end_moves_nothing(character, where):
    before = f"# copied{character}from a page\n" if where == "comment" else f'"""copied{character}from a page"""\n'
    source = taken(before + with_body("x = 1")).source
    (kernel,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert kernel.lineno == 7 and ast.unparse(kernel.body[-1]) == "x = 1"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["", "# ü", "A = tl.constexpr(1)", "x = '''a\nb'''", "import os", "\x0c", "def f(): pass"]),
        max_size=12,
    )
)
def test_lines_are_kept_whatever_stands_before(lines):
    text = "\n".join(["import triton", *lines, with_body("x = 1")])
    want = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
    (got,) = [n for n in ast.parse(taken(text).source).body if isinstance(n, ast.FunctionDef)]
    assert (got.lineno, got.end_lineno, ast.dump(got)) == (want.lineno, want.end_lineno, ast.dump(want))


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
    assert (verdict.status, verdict.cause) == ("fail", "kernel_raised") and "mine.py, line 40" in verdict.message


# ---- what is missing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD.replace("kernel(", "kernle(") + "    pass\n", "no kernel named `kernel`; it has `kernle`"),
        (HEAD.replace("@triton.jit\n", "") + "    pass\n", "line 5: `kernel` has lost its decorator"),
        ("import triton\n", "no @triton.jit function at all"),
        ("", "no @triton.jit function at all"),
        ("if True:\n    " + HEAD[HEAD.index("@") :].replace("\n", "\n    ") + "    pass\n", "no kernel named"),
    ],
)
def test_a_kernel_that_is_not_there(text, says):
    refused = refusal(text)
    assert refused.cause == "no_kernel" and says in str(refused)


def test_a_kernel_in_the_first_line_is_told_where_to_start():
    assert "first line" in str(refusal(HEAD[HEAD.index("@") :] + "    pass\n"))


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
    refused = refusal(f"{line}\n" + with_body("x = 1"))
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
    assert line not in taken(f"{line}\n" + with_body("x = 1")).source.splitlines()[0]


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
        fingerprint(with_body(body), "ex.py", ("kernel",))


# ---- the shape ---------------------------------------------------------------------------------------------------------


def test_comments_docstrings_layout_and_pass_do_not_change_the_shape():
    plain = fingerprint(with_body("x = n + 1"), "ex.py", ("kernel",))
    dressed = (
        '"""Notes."""\nimport os\n'
        + HEAD
        + '    """A kernel."""\n    # a note\n    offsets = (tl.arange(0,\n        BLOCK))\n\n    x = n+1  # added\n    pass\n'
    )
    assert fingerprint(dressed, "ex.py", ("kernel",)) == plain


@pytest.mark.parametrize(
    "line",
    ["x = n + 2", "x = n - 1", "x = y_ptr + 1", "x = n + 1\n    x = n + 1", "'''text'''\n    x = n + 1", "y = n + 1"],
)
def test_code_changes_the_shape(line):
    assert fingerprint(with_body(line), "ex.py", ("kernel",)) != fingerprint(
        with_body("x = n + 1"), "ex.py", ("kernel",)
    )


def test_what_is_no_kernel_does_not_change_the_shape_and_a_helper_is_work_begun():
    bare = fingerprint(with_body("x = 1"), "ex.py", ("kernel",))
    assert (
        fingerprint(with_body("x = 1") + "\n\nA = tl.constexpr(1)\ndef launch(): pass\n", "ex.py", ("kernel",)) == bare
    )
    assert (
        fingerprint(with_body("x = 1") + "\n\n@triton.jit\ndef helper(x):\n    return x\n", "ex.py", ("kernel",))
        != bare
    )


# ---- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", b"a = 1\nb = 2\n", b"a = 1\rb = 2\r"])
def test_marks_and_line_ends_of_other_systems_are_read(tmp_path, data):
    (tmp_path / "ex.py").write_bytes(data)
    assert [ast.unparse(node) for node in ast.parse(read_text(tmp_path / "ex.py")).body] == ["a = 1", "b = 2"]


def test_the_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "ex.py").write_bytes("a = 1\n# Lösung\n".encode("latin-1"))
    with pytest.raises(Unreadable, match="byte 0xf6 in line 2"):
        read_text(tmp_path / "ex.py")


def test_text_around_a_kernel_is_no_reason_to_fail():
    text = textwrap.dedent("""
        async def kernel_later(): pass
        type_of = type(1)
        """)
    assert taken(with_body("x = 1") + text).names == ("kernel",)
