"""Takes the kernels out of a learner's file, without running any of it.

The file is read as bytes, decoded and parsed. Only ``@triton.jit`` functions and ``tl.constexpr`` constants go on to
the child, with every line at the number it had, so that messages point into the learner's file. Inside a kernel only
names and attributes on a list are allowed: what a kernel needs is there, what reaches out of a kernel is not. An
undefined name, which the interpreter would meet as a puzzling KeyError, is found here with its line.
"""

from __future__ import annotations

import ast
import builtins
import codecs
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.base.errors import missing_package
from course_lib.base.files import NoPlainFile, read_plain_file
from course_lib.base.text import make_visible_line, shorten
from course_lib.grading.submission.places import Located, Span, find_span, split_lines

_MAX_BYTES = 1_000_000
_LONGEST_QUOTE = 120  # characters; the line itself is shown apart, with its place
_LONGEST = 1000  # characters of a sentence about a file
_MAX_DEPTH = 100  # what walks a tree recursively takes some four frames a level, in a notebook on top of many others

_TL_NAMES = frozenset(
    """abs advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
    atomic_xchg atomic_xor bfloat16 broadcast broadcast_to cast cat cdiv ceil clamp constexpr cos cumprod cumsum debug_barrier
    device_assert device_print div_rn dot erf exp exp2 expand_dims fdiv flip float16 float32 float64 floor fma full gather histogram
    int1 int16 int32 int64 int8 interleave join load log log2 make_block_ptr make_tensor_descriptor math max max_constancy
    max_contiguous maximum min minimum multiple_of num_programs permute pointer_type program_id range ravel reduce reshape rsqrt
    sigmoid sin softmax sort split sqrt sqrt_rn static_assert static_print static_range store sum swizzle2d trans uint16 uint32
    uint64 uint8 umulhi view where xor_sum zeros zeros_like""".split()
)
_TL_MATH_NAMES = frozenset(
    "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi".split()
)
_TRITON_NAMES = frozenset("jit cdiv next_power_of_2 language".split())
_VALUE_ATTRIBUTES = frozenset(
    """T abs argmax argmin associative_scan atomic_add broadcast_to cast cdiv ceil cos cumprod cumsum dtype element_ty erf exp exp2
    expand_dims flip floor gather is_bf16 is_fp16 is_fp32 is_fp64 is_floating is_int log log2 logical_and logical_or max min numel
    permute primitive_bitwidth ravel reduce reshape rsqrt scalar shape sigmoid sin softmax sort split sqrt sqrt_rn store sum to trans
    type value view xor_sum load""".split()
)
_BUILTINS = frozenset("range min max abs float int bool len tuple isinstance print True False None".split())
_STATEMENTS = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.For, ast.While, ast.If, ast.Return,
    ast.Pass, ast.Assert, ast.Break, ast.Continue,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.Subscript,
    ast.Slice, ast.Tuple, ast.List, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Starred,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


_UNFINISHED = re.compile(r"(?:[-+*/%@&|^<>=!:]=|[-+*/%@&|^<>=]|\b(?:and|or|not|in|is))$")
_NOTEBOOK = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cells|metadata|nbformat)"')
_NEEDED = frozenset({"triton", "torch", "numpy"})  # by the course: where one is missing, the learner's import is right


class Unreadable(Exception):
    """The file cannot be graded. ``cause`` is a stable identifier, ``str()`` the sentences for its author.

    ``what`` is the same without file and line, for where ``span`` is shown apart; None where no line is to blame.
    """

    def __init__(self, cause: str, message: str, what: str = "", span: Span | None = None):
        super().__init__(shorten(message, _LONGEST))
        self.cause, self.what, self.span = cause, shorten(what or message, _LONGEST), span


def make_refusal(cause: str, file: str, node: Located, what: str) -> Unreadable:
    """What is wrong with one node of ``file``."""
    return Unreadable(cause, f"{file}, line {node.lineno}: {what}", what, find_span(node))


@dataclass(frozen=True)
class Kernels:
    """``source`` has the kernels, or functions, and what they need, at the line numbers of the learner's file; ``names`` are theirs.

    ``rules`` is plain data, for the child: "kind" and "forbidden" as of the exercise, "file" for messages, and "unlisted", the
    refusal where only what is on the lists may run, None if all of it is there. Without rules, anything runs.
    """

    source: str
    names: tuple[str, ...]
    rules: dict[str, Any] | None = None


def read_text(path: Path, if_missing: str = "`course reset` writes it anew.") -> str:
    """The file's text; ``if_missing`` is what to do about a file that is not there.

    A file that is itself a link is never read, neither the learner's own nor one named with ``--file``: nothing tells a person who
    links their file from a submission that links to what its author may not read. A link among the folders above it is followed.

    Raises: Unreadable if there is no such file, it is no plain file, too large, or not UTF-8 text.
    """
    name = make_visible_line(path.name)
    try:
        data = read_plain_file(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        folder = make_visible_line(str(path.parent.resolve()))
        raise Unreadable("no_file", f"there is no file {name} in {folder}. {if_missing}".rstrip()) from None
    except NoPlainFile as other:
        wanted = "a file of Python code belongs there."
        if path.is_symlink():
            wanted = f"it cannot be read through one. Name the file itself, or put a copy of it in place of the link. {if_missing}"
        # in backquotes, so that no capital letter is given to the name at a sentence's beginning
        raise Unreadable(
            "no_file", f"{name} {other.strerror}; {wanted}".rstrip(), f"`{name}` {other.strerror}; {wanted}"
        ) from None
    except OSError as error:
        raise Unreadable("no_file", f"{name} cannot be read: {error.strerror}. Look at its permissions.") from None
    if len(data) > _MAX_BYTES:
        raise Unreadable(
            "too_large", f"{name} is larger than 1 MB. A kernel file holds a page of code; is this the right file?"
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable(
            "not_utf8", f"{name} is saved as UTF-16, and Python reads UTF-8. Save it with the encoding UTF-8."
        )
    if b"\0" in data:
        raise Unreadable(
            "not_text", f"{name} holds a NUL byte, so it is no text. Save it as UTF-8, or `course reset` it."
        )
    if _NOTEBOOK.match(data):
        raise Unreadable(
            "not_text",
            f"{name} is a notebook, and no Python code. Your code belongs into the exercise's .py file in exercises/. {if_missing}".rstrip(),
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            "not_utf8",
            f"{name} is not UTF-8: byte {data[error.start]:#04x} in line {line}. Save it with the encoding UTF-8.",
        ) from None


def extract(text: str, name: str, wanted: tuple[str, ...]) -> Kernels:
    """The kernels of a file's ``text``.

    Raises: Unreadable if the text does not parse, imports what does not exist, lacks a kernel of ``wanted``, or uses in a
    kernel what is not on the list.
    """
    tree = parse(text, name)
    check_imports(
        tree, name, "A kernel needs only `import triton` and `import triton.language as tl`; remove the line."
    )
    kernels = _find_kernels(tree, name, wanted)
    constants = {found: node for node in tree.body if (found := _find_constant_name(node))}
    plain = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and not _find_constant_name(node)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    for node in constants.values():
        _check_constant(node, name)
    for kernel in kernels.values():
        _check_kernel(kernel, known=kernels.keys() | constants.keys(), plain=plain, imported=imported, file=name)
    keep = [*constants.values(), *kernels.values()]
    return Kernels(keep_lines(text, keep, "import triton; import triton.language as tl"), tuple(kernels))


def fingerprint(text: str, name: str, wanted: tuple[str, ...]) -> str:
    """A fingerprint of the kernels' code: docstrings, comments, layout and ``pass`` leave it as it is, code changes it.

    Raises: Unreadable if the text does not parse or lacks a kernel of ``wanted``.
    """
    return "\n".join(fingerprint_function(kernel) for kernel in _find_kernels(parse(text, name), name, wanted).values())


def _find_kernels(tree: ast.Module, name: str, wanted: tuple[str, ...]) -> dict[str, ast.FunctionDef]:
    kernels = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and _has_jit_decorator(node)}
    for kernel in wanted:
        if kernel not in kernels:
            raise _describe_missing(kernel, tree, kernels, name)
    return kernels


def parse(text: str, name: str) -> ast.Module:
    try:
        tree = ast.parse(text, filename=name)
        level: list[ast.AST] = [tree]
        for _ in range(_MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise RecursionError
        _check_numbers(tree, name)
        return tree
    except SyntaxError as error:
        line = shorten((error.text or "").strip(), _LONGEST_QUOTE)
        shown = f": `{line}`" if line else ""
        message = f"{name}, line {error.lineno} is not valid Python ({error.msg}){shown}."
        if open_end := _UNFINISHED.search((error.text or "").partition("#")[0].rstrip()):
            what = f"this line is not finished: nothing stands after `{open_end[0]}`. Is a part still missing?"
            raise Unreadable(
                "syntax_error", f"{name}, line {error.lineno}: {what}", what, _find_span_of_error(error, text)
            ) from None
        raise Unreadable(
            "syntax_error", message, f"this is not valid Python: {error.msg}", _find_span_of_error(error, text)
        ) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise Unreadable(
            "syntax_error", f"{name} cannot be parsed ({type(error).__name__}): it is nested too deeply."
        ) from None


def _check_numbers(tree: ast.Module, name: str) -> None:
    """Refuse a whole number that Python itself refuses to write out; in decimal digits it would be a syntax error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            try:
                repr(node.value)
            except ValueError:
                digits = f"more than {sys.get_int_max_str_digits()} digits"
                raise make_refusal(
                    "syntax_error", name, node, f"a number of {digits}, which Python does not write out."
                ) from None


def _find_span_of_error(error: SyntaxError, text: str) -> Span | None:
    lines = split_lines(text)
    if not error.lineno or error.lineno > len(lines):
        return None
    if not error.offset or error.offset < 1:
        return Span(error.lineno)
    source = lines[error.lineno - 1]
    start, end = error.offset - 1, (error.end_offset or 0) - 1  # in characters
    end = end if error.end_lineno == error.lineno and end > start else start + 1
    return Span(error.lineno, len(source[:start].encode()), len(source[:end].encode()))


def check_imports(tree: ast.Module, name: str, needed: str) -> None:
    """Refuse an import of what does not exist; ``needed`` says what the exercise needs instead.

    Raises: Unreadable; EnvironmentFault if it is a package that the course itself needs.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "."]
        else:
            continue
        for module in modules:
            top = module.split(".")[0]
            if top in _NEEDED and not _exists(top):
                raise missing_package(top)
            if not top or not _exists(top):
                raise make_refusal(
                    "import_fails",
                    name,
                    node,
                    f"the import of {module!r} fails, there is no such module here. {needed}",
                )


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # loaded, but not from a file that could be found again: __main__
        return True


def _has_jit_decorator(node: ast.FunctionDef) -> bool:
    """True if one of the decorators is triton.jit, however it is written."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(target) in ("triton.jit", "jit"):
            return True
    return False


def _describe_missing(kernel: str, tree: ast.Module, kernels: dict, name: str) -> Unreadable:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            return make_refusal(
                "no_kernel", name, node, f"`{kernel}` has lost its decorator. Put `@triton.jit` on the line above it."
            )
    found = f"it has {', '.join(f'`{k}`' for k in kernels)}" if kernels else "it has no @triton.jit function at all"
    return Unreadable(
        "no_kernel",
        f"{name} has no kernel named `{kernel}`; {found}. The course launches the kernel by that name: give it back, or `course reset` the file.",
    )


def _find_constant_name(node: ast.stmt) -> str | None:
    """The name of ``X = tl.constexpr(...)`` or ``X: tl.constexpr = ...``, else None."""
    if (
        isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value
        and ast.unparse(node.annotation) == "tl.constexpr"
    ):
        return node.target.id
    if (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
    ):
        return node.targets[0].id if ast.unparse(node.value.func) == "tl.constexpr" else None
    return None


def _check_constant(node: ast.stmt, file: str) -> None:
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    value = node.value
    # the child evaluates the whole line: nothing but the one argument may stand in it
    if (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) == "tl.constexpr"
        and len(value.args) == 1
        and not value.keywords
    ):
        value = value.args[0]
    if value is None or not is_plain(value):
        raise make_refusal(
            "not_allowed", file, node, "a constant for a kernel must be a plain number, such as `tl.constexpr(1e-5)`."
        )


def is_plain(value: ast.expr) -> bool:
    """True for a literal, or arithmetic with literals that takes no time: 9**9**9 would keep the child from starting."""
    for part in ast.walk(value):
        if not isinstance(part, (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)):
            return False
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Pow, ast.LShift)):
            base, exponent = part.left, part.right.operand if isinstance(part.right, ast.UnaryOp) else part.right
            if not (isinstance(base, ast.Constant) and isinstance(exponent, ast.Constant)):
                return False
            if isinstance(exponent.value, int) and exponent.value > 1024:
                return False
    return True


def _check_kernel(kernel: ast.FunctionDef, known: set[str], plain: set[str], imported: set[str], file: str) -> None:
    def refuse(node: ast.AST, what: str, cause: str = "not_allowed"):
        raise make_refusal(cause, file, node if isinstance(node, Located) else kernel, what)

    if len(kernel.decorator_list) != 1 or ast.unparse(kernel.decorator_list[0]) != "triton.jit":
        others = ", ".join(f"`@{ast.unparse(d)}`" for d in kernel.decorator_list)
        refuse(
            kernel,
            f"`{kernel.name}` is decorated with {others}. The course launches it with its own settings: keep `@triton.jit`, and remove the others.",
        )
    arguments = kernel.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        refuse(kernel, f"`{kernel.name}` takes * or ** arguments, which a kernel cannot. Name each argument.")
    parameters = [*arguments.posonlyargs, *arguments.args]
    for parameter in parameters:
        if parameter.annotation is not None and ast.unparse(parameter.annotation) not in (
            "tl.constexpr",
            "triton.language.constexpr",
        ):
            refuse(
                parameter,
                f"argument `{parameter.arg}` is annotated with `{ast.unparse(parameter.annotation)}`; only `tl.constexpr` means something here.",
            )
    if kernel.returns is not None or getattr(kernel, "type_params", None):
        refuse(
            kernel,
            f"`{kernel.name}` declares what it returns, or a type of its own. A kernel does neither; leave it out.",
        )
    for default in arguments.defaults:
        if not (isinstance(default, ast.Name) or is_plain(default)):
            refuse(
                default,
                f"the default `{ast.unparse(default)}` of an argument must be a plain number, or the name of a constant.",
            )
    body = [*kernel.body, *arguments.defaults]
    assigned = {
        node.id
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    defined = {parameter.arg for parameter in parameters} | assigned | set(known) | _BUILTINS | {"tl", "triton"}
    for node in (node for part in body for node in ast.walk(part)):
        if isinstance(node, ast.FunctionDef):
            refuse(node, f"`{node.name}` is defined inside a kernel. Move it out and decorate it with `@triton.jit`.")
        if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
            refuse(node, f"`{_quote_first_words(node)}` is not possible inside a kernel.")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in defined:
            refuse(node, *_describe_undefined(node.id, plain, imported))
        if isinstance(node, ast.Name) and node.id.startswith("__"):
            refuse(node, f"`{node.id}` is not possible inside a kernel.")
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            refuse(
                node,
                f"`{ast.unparse(node)}` is assigned to; a kernel can only assign to names. Store to memory with `tl.store`.",
            )
        if isinstance(node, ast.Attribute) and _find_root(node) in defined:  # of `np.zeros`, what is wrong is `np`
            _check_attribute(node, refuse)


def _find_root(node: ast.Attribute) -> str:
    """``np`` of ``np.linalg.norm``; for what does not begin with a name, one that is always defined."""
    value = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else "tl"


def _describe_undefined(name: str, plain: set[str], imported: set[str]) -> tuple[str, str]:
    if name in imported:
        return f"`{name}` is an import of Python's; inside a kernel there are `tl` and `triton` only.", "not_allowed"
    if name in plain:
        return (
            f"`{name}` is a plain Python global, which the compiler refuses. Write `{name} = tl.constexpr(...)` or pass it as an argument.",
            "not_allowed",
        )
    if hasattr(builtins, name):
        return f"`{name}` is Python, not Triton; a kernel cannot use it.", "not_allowed"
    return (
        f"`{name}` is used, and nothing in the kernel defines it. Is a part still missing, or the name mistyped?",
        "undefined_name",
    )


def _check_attribute(node: ast.Attribute, refuse) -> None:
    owner = ast.unparse(node.value)
    if owner == "tl":
        allowed, module = _TL_NAMES, "tl"
    elif owner == "tl.math":
        allowed, module = _TL_MATH_NAMES, "tl.math"
    elif owner == "triton":
        allowed, module = _TRITON_NAMES - {"jit"}, "triton"
    elif owner == "triton.language":
        allowed, module = _TL_NAMES, "tl"
    else:
        allowed, module = _VALUE_ATTRIBUTES, ""
    if node.attr not in allowed:
        what = f"`{module}.{node.attr}`" if module else f"`.{node.attr}`"
        refuse(node, f"{what} is not something a kernel of this course can use. Is it mistyped?")


def _quote_first_words(node: ast.AST) -> str:
    words = ast.unparse(node).splitlines()[0] if isinstance(node, (ast.stmt, ast.expr)) else type(node).__name__
    return words if len(words) < 60 else words[:57] + "..."


def keep_lines(text: str, keep: list[ast.stmt], header: str) -> str:
    """The kept statements at their own line numbers, everything else blank, the imports of ``header`` on the first line."""
    lines = split_lines(text)
    out = [""] * len(lines)
    for node in keep:
        if not isinstance(node, ast.FunctionDef):
            # not the whole line: something else may follow a semicolon
            out[node.lineno - 1] += f"{'; ' if out[node.lineno - 1] else ''}{ast.unparse(node)}"
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        for number in range(first, (node.end_lineno or node.lineno) + 1):
            out[number - 1] = lines[number - 1]
    if not out or out[0]:
        raise Unreadable(
            "not_allowed",
            "code starts in the first line of the file. Begin with the imports that the exercise came with.",
        )
    return "\n".join([header, *out[1:]]) + "\n"


def fingerprint_function(kernel: ast.FunctionDef) -> str:
    class Strip(ast.NodeTransformer):
        def visit_Pass(self, node):
            return None

    function = Strip().visit(ast.parse(ast.unparse(kernel)).body[0])
    if function.body and isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant):
        function.body = function.body[1:]
    return ast.dump(function)
