"""Explain why the compiler refuses a kernel: find the cause, one sentence and the place from the
exception that Triton raised."""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import re
import textwrap
import traceback
from dataclasses import dataclass

from triton.runtime.jit import JITFunction

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.compiler.compilation import TOOLS, BadArguments, NoTool, explain_tool
from course_lib.compiler.compile_job import Refusal
from course_lib.compiler.units import NoKernel, Units


@dataclass(frozen=True)
class _Place:
    """A node of a kernel's syntax tree, and its place in the unit's text."""

    unit: int
    line: int
    column: int
    node: ast.AST | None = None
    function: ast.FunctionDef | None = None
    shift: int = 0  # added to a line number of ``function`` to get that of the text

    def at(self, node: ast.stmt | ast.expr) -> _Place:
        return _Place(
            self.unit, node.lineno + self.shift, node.col_offset, node, self.function, self.shift
        )


def explain(error: BaseException, units: Units, printed: str) -> Refusal:
    """Return the cause, a sentence, and the place (unit, line from 1, column from 0) of the
    exception that ended a compilation.

    Args:
        error: the exception.
        units: the units that were compiled.
        printed: the compiler's output.
    """
    chain = [error]
    while chain[-1].__cause__ is not None and len(chain) < 50:
        chain.append(chain[-1].__cause__)
    place = _find_place(chain, units)
    root_error = chain[-1]
    # the program disappeared after _find_tool found it
    if isinstance(root_error, OSError) and str(root_error.filename).startswith(str(TOOLS)):
        root_error = explain_tool(root_error)
    text = _read_words(root_error)
    if isinstance(root_error, NoKernel):
        return _describe(
            "no_kernel",
            _("there is no @triton.jit function named `{name}`").format(name=units.name),
            _Place(0, units.units[0]["first_line"], 0),
        )
    if isinstance(root_error, NoTool):
        return _describe("no_tool", str(root_error), place)
    if os.strerror(errno.EFBIG) in text:  # Triton passes on only the message of this exception
        return _describe(
            "flood", _("it writes megabytes while it is compiled, and was ended"), place
        )
    if isinstance(root_error, BadArguments):
        return _describe(
            "arguments",
            _("the arguments do not fit `{name}`: {error}").format(name=units.name, error=text),
            place,
        )
    if isinstance(root_error, SyntaxError):
        words = _("this is not valid Python ({error})").format(error=root_error.msg)
        return _describe(
            "syntax_error",
            words,
            _Place(0, root_error.lineno or 1, max((root_error.offset or 1) - 1, 0)),
        )
    if units.compiling == "compiler" and (
        mlir := re.search(r"(\S+):(\d+):(\d+): error: (.*)", printed)
    ):
        for number, file in enumerate(units.files):
            if os.path.basename(mlir[1].strip("\"'")) == file.name:
                place = _Place(number, int(mlir[2]), int(mlir[3]) - 1)
        text = mlir[4]
    for cause, pattern, say in _KNOWN:
        if (match := re.search(pattern, text, re.DOTALL)) and (refusal := say(match, place)):
            return _describe(cause, *refusal)
    return _describe("other", text or type(root_error).__name__, place)


def _describe(cause: str, sentence: str, place: _Place) -> Refusal:
    return Refusal(cause, sentence, place.unit, place.line, place.column)


def _read_words(error: BaseException) -> str:
    """Return the error's message on one line, without the excerpt of source code around it."""
    text = getattr(error, "error_message", None) or ("" if hasattr(error, "node") else str(error))
    # Triton passes on some exceptions as their repr.
    if quoted := re.fullmatch(r"(\w+)\((.*?),?\)", text, re.DOTALL):
        with contextlib.suppress(ValueError, SyntaxError):
            text = str(ast.literal_eval(quoted[2]))
    if isinstance(error, AssertionError) and not text:
        text = _("an assertion of the compiler failed")
    text = re.sub(r"\s+", " ", text).strip().rstrip(".")
    if len(text) > 400:
        text = text[:400].rsplit(" ", 1)[0] + " ..."
    return text.encode("utf-8", "replace").decode()


def _find_place(chain: list[BaseException], units: Units) -> _Place:
    """Find the innermost place in the units' own text that an error went through; the kernel's
    first line if it names none."""
    functions = units.functions()
    for link in reversed(chain):
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if isinstance(node, (ast.stmt, ast.expr)):
            for unit, function in functions:
                if function.src == source:
                    return _in_function(unit, function, node)
    # An error from before code generation has no node, but the visitor in its traceback has.
    for link in reversed(chain):
        if place := _find_visited_place(link, units) or _find_raised_place(link, units):
            return place
    for unit, function in functions:
        if unit == 0 and function.__name__ == units.name:
            return _in_function(unit, function, function.parse().body[0])
    return _Place(0, units.units[0]["first_line"], 0)


def _find_visited_place(link: BaseException, units: Units) -> _Place | None:
    """Find the innermost node of a jitted function that the compiler was visiting when it raised
    the error."""
    for frame, _line in reversed(list(traceback.walk_tb(link.__traceback__))):
        node, visitor = frame.f_locals.get("node"), frame.f_locals.get("self")
        if (
            isinstance(node, (ast.stmt, ast.expr))
            and visitor is not None
            and hasattr(visitor, "globals")
        ):
            for unit, function in units.functions():
                if function.__globals__ is visitor.globals and visitor.name.endswith(
                    f".{function.__name__}"
                ):
                    return _in_function(unit, function, node)
    return None


def _find_raised_place(link: BaseException, units: Units) -> _Place | None:
    """Find the innermost line of the units that was running when the error was raised."""
    for frame, line in reversed(list(traceback.walk_tb(link.__traceback__))):
        for number, file in enumerate(units.files):
            if frame.f_code.co_filename == str(file):
                return _Place(number, line, 0)
    return None


def _in_function(unit: int, function: JITFunction, node: ast.stmt | ast.expr) -> _Place:
    raw = textwrap.dedent("".join(function.raw_src))
    definition = re.search(r"^def\s+\w+\s*\(", raw, re.MULTILINE)
    parsed = function.parse().body[0]
    assert definition is not None and isinstance(parsed, ast.FunctionDef)
    shift = function.starting_line_number + raw[: definition.start()].count("\n") - 1
    return _Place(unit, node.lineno + shift, node.col_offset, node, parsed, shift)


def _loop_carried(match: re.Match, place: _Place) -> tuple[str, _Place]:
    name, before, after = match[1], _describe_type(match[2]), _describe_type(match[3])
    # the compiler names the loop; point at the assignment, which has to change
    if place.node is not None:
        inside = [
            node
            for node in ast.walk(place.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        ]
        if inside:
            place = place.at(max(inside, key=lambda node: node.lineno))
    words = _(
        "loop-carried variable `{name}` changes its type from {before} to {after} in the loop; give"
        " it one type before the loop"
    )
    return words.format(name=name, before=before, after=after), place


def _describe_type(text: str) -> str:
    """Write ``<['8'], fp16>`` and ``<[8], fp16>`` in words."""
    block = re.match(r"<\[(.*)\], (.*)>$", text.strip())
    if block is None:
        return text.strip()
    return _("a block of {shape} {dtype}").format(
        shape=block[1].replace("'", "").replace(", ", " x "), dtype=block[2]
    )


def _not_defined(match: re.Match, place: _Place) -> tuple[str, _Place]:
    name = match[1]
    for node in ast.walk(place.function) if place.function else []:
        if isinstance(node, (ast.If, ast.For, ast.While)):
            inner = [
                part
                for part in ast.walk(node)
                if isinstance(part, ast.Name)
                and isinstance(part.ctx, ast.Store)
                and part.id == name
            ]
            if inner:
                words = _(
                    "`{name}` is defined only inside the loop in line {line}, which may not run;"
                    " give it a value before that"
                )
                if isinstance(node, ast.If):
                    words = _(
                        "`{name}` is defined only inside one branch of the `if` in line {line},"
                        " which may not run; give it a value before that"
                    )
                return words.format(name=name, line=place.at(node).line), place
    return _("`{name}` is not defined").format(name=name), place


def _ambiguous(match: re.Match, place: _Place) -> tuple[str, _Place]:
    test = getattr(place.node, "test", None)
    condition = f"`{ast.unparse(test)}`" if test is not None else _("this")
    words = _(
        "`if` needs a single value, and {condition} is a block; use `tl.where`, or the mask of a"
        " load or store"
    )
    return words.format(condition=condition), place


def _index(match: re.Match, place: _Place) -> tuple[str, _Place]:
    words = _(
        "a block is indexed, which has no single elements in a kernel; reduce it (`tl.sum`,"
        " `tl.max`) or load the element from memory"
    )
    if isinstance(place.node, ast.Subscript):
        words = _(
            "`{code}` indexes a block, which has no single elements in a kernel; "
            "reduce it (`tl.sum`, `tl.max`) or load the element from memory"
        ).format(code=ast.unparse(place.node))
    return words, place


def _unsupported_node(match: re.Match, place: _Place) -> tuple[str, _Place]:
    if match[1] in ("Break", "Continue"):
        words = _(
            "the compiler does not support `{statement}`; put the condition into the loop's bounds,"
            " or into a mask"
        )
        return words.format(statement=match[1].lower()), place
    code = ast.unparse(place.node).splitlines()[0] if place.node is not None else match[1]
    return (
        _("the compiler does not support `{code}` in a kernel ({kind})").format(
            code=code, kind=match[1]
        ),
        place,
    )


def _branch_type(match: re.Match, place: _Place) -> tuple[str, _Place]:
    words = _("`{name}` is {one} after one branch and {other} after the other; make them one type")
    return (
        words.format(name=match[1], one=_describe_type(match[2]), other=_describe_type(match[3])),
        place,
    )


def _make_reply(sentence: str):
    return lambda match, place: (match.expand(_(sentence)), place)


# (cause, pattern that Triton's message matches, function that returns the sentence and the place)
_KNOWN = [
    (
        "plain_global",
        r"Cannot access global variable (\w+)",
        _make_reply(
            N_(
                r"`\1` is a plain Python global, which the compiler refuses; write `\1 ="
                r" tl.constexpr(...)` or pass it as an argument"
            )
        ),
    ),
    (
        "loop_carried_type",
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop",
        _loop_carried,
    ),
    ("unsupported_statement", r"unsupported AST node type: (\w+)", _unsupported_node),
    (
        "block_condition",
        r"Boolean value of Tensor with more than one value is ambiguous",
        _ambiguous,
    ),
    (
        "arange_runtime",
        r"arange's arguments must be of type tl.constexpr",
        _make_reply(
            N_(
                "`tl.arange` needs constants, and a bound here is known only at run time; use a"
                " tl.constexpr BLOCK and a mask"
            )
        ),
    ),
    ("block_index", r"unsupported tensor index", _index),
    (
        "list_method",
        # messages of Triton 3.7 and 3.6
        r"(?:'(?:tuple|list)' object has no attribute '?|^'(?=\w+' is not in list))(\w+)",
        _make_reply(
            N_(
                r"`.\1` changes a Python list, and a list cannot grow in a kernel; keep the values"
                r" in a block or in names"
            )
        ),
    ),
    (
        "constant_method",
        r"'(?:constexpr|int|float|bool)' object has no attribute '?(\w+)",
        _make_reply(
            N_(
                r"the compiler knows this number, and a known number has no `.\1`: a tl.constexpr,"
                r" and each argument that is 1 in a case (a stride, "
                r"say). `tl.cast(...)` takes it as it takes any other"
            )
        ),
    ),
    ("undefined_name", r"^(?:name )?'?(\w+)'? is not defined$", _not_defined),
    (
        "branch_type",
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)",
        _branch_type,
    ),
    (
        "chained_assignment",
        r"Simultaneous multiple assignment is not supported",
        _make_reply(
            N_(
                "the compiler does not support two assignments in one statement; write them on two"
                " lines"
            )
        ),
    ),
    (
        "power",
        r"'tensor' object has no attribute '__pow__'|unsupported operand type\(s\) for \*\*",
        _make_reply(N_("the compiler has no `**` for blocks; multiply instead (`x * x`)")),
    ),
    (
        "block_through_scalar_pointer",
        r"Value argument cannot be block type if pointer argument is not a block",
        _make_reply(
            N_(
                "a block is stored through one pointer; add offsets to the pointer, one for each"
                " lane"
            )
        ),
    ),
    (
        "foreign_value",
        r"cannot convert (.+) of type <class 'numpy\.(\w+)'> to tensor",
        _make_reply(
            N_(
                r"`numpy.\2` is a value of NumPy's, which the compiler cannot use; write a plain"
                r" number"
            )
        ),
    ),
]
