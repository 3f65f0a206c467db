"""Cut out of a learner's file the code that the exercise's entry points need, without running any
of it.

The child gets the entry points and everything that they name, directly or indirectly: imports,
functions, classes, constants. Each line keeps its number. All other code is left out: prints,
asserts, launches, tests, an old attempt.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.grading.submission.places import split_lines
from course_lib.grading.submission.source import Unreadable, make_refusal
from course_lib.grading.submission.syntax import list_names

if TYPE_CHECKING:
    from course_lib.grading.kind import Kind

_JIT = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit")
Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Cut:
    """The ``statements`` that are cut out of a file. If the entry points are methods of a class,
    ``alias`` is a last line that gives them the names that the course calls."""

    statements: list[ast.stmt]
    alias: str = ""

    def write(self, text: str) -> str:
        """Return the source, out of the ``text`` of the file. Each line keeps its number, and every
        other line is empty."""
        return _keep_lines(text, self.statements) + self.alias


def cut(tree: ast.Module, name: str, wanted: tuple[str, ...], kind: Kind) -> Cut:
    """Cut out ``wanted`` and what they need. ``name`` is the file's, for messages.

    Raises: Unreadable if an entry point is not there.
    """
    owner = kind.find_entry_points(tree, name, wanted)
    if owner is None:
        return Cut(_find_needed(tree, list(wanted)))
    methods = ", ".join(f"{owner}.{method}" for method in wanted)
    return Cut(_find_needed(tree, [*wanted, owner]), f"{', '.join(wanted)} = {methods}\n")


def list_imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, and the dotted name that it stands for: ("F",
    "torch.nn.functional")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    alias.asname or alias.name.split(".")[0],
                    alias.name if alias.asname else alias.name.split(".")[0],
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


def is_jitted(node: ast.AST, imports: dict[str, str]) -> bool:
    """Return True for a function with @triton.jit among its decorators, with or without arguments,
    under any name that is imported."""
    return isinstance(node, Function) and any(
        is_jit(decorator, imports) for decorator in node.decorator_list
    )


def is_jit(decorator: ast.expr, imports: dict[str, str]) -> bool:
    """Return True if ``decorator`` stands for triton.jit."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    root, _dot, rest = ast.unparse(target).partition(".")
    return f"{imports.get(root, root)}{'.' * bool(rest)}{rest}" in _JIT


def require_kernels(tree: ast.Module, name: str, wanted: tuple[str, ...]) -> None:
    """Raise Unreadable unless the file has all kernels of ``wanted``. ``name`` is the file's."""
    imports = dict(list_imports(tree))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    kernels = [function for function, node in functions.items() if is_jitted(node, imports)]
    for kernel in wanted:
        if kernel in kernels:
            continue
        if kernel in functions:
            lost = _(
                "`{name}` has lost its decorator. Put `@triton.jit` on the line above it."
            ).format(name=kernel)
            raise make_refusal("no_kernel", name, functions[kernel], lost)
        what_it_has = _("it has {names}").format(names=list_words(f"`{k}`" for k in kernels))
        words = _(
            "{file} has no kernel named `{name}`; {found}. The course launches the kernel by that"
            " name: give it back, or `course reset` the file."
        )
        what_it_has = what_it_has if kernels else _("it has no @triton.jit function at all")
        raise Unreadable("no_kernel", words.format(file=name, name=kernel, found=what_it_has))


def find_functions(tree: ast.Module, name: str, wanted: tuple[str, ...]) -> str | None:
    """Return None if the functions are there, else the name of a class that has all of them as
    methods which need no object."""
    bound = {bound_name for node in tree.body for bound_name in list_bound_in_file(node)}
    missing = next((function for function in wanted if function not in bound), None)
    if missing is None:
        return None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if owner := next((node.name for node in classes if _has_methods(node, name, wanted)), None):
        return owner
    functions = [node.name for node in tree.body if isinstance(node, Function)]
    has = [f"`{function}`" for function in functions] + [
        _("the class `{name}`").format(name=node.name) for node in classes
    ]
    listed = (
        _("it has {names}").format(names=list_words(has)) if has else _("it has no function at all")
    )
    words = _(
        "{file} has no function named `{name}`; {found}. The course calls it by that name: give it"
        " back, or `course reset` the file."
    )
    raise Unreadable("no_function", words.format(file=name, name=missing, found=listed))


def _has_methods(node: ast.ClassDef, name: str, wanted: tuple[str, ...]) -> bool:
    """Return True if the class has all of ``wanted`` as methods.

    Raises: Unreadable if it has them, and one takes self. ``name`` is the file's.
    """
    methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
    if not all(function in methods for function in wanted):
        return False
    for method in (methods[function] for function in wanted):
        arguments = [*method.args.posonlyargs, *method.args.args]
        if not method.decorator_list and arguments and arguments[0].arg == "self":
            words = _(
                "`{name}` is a method of `{owner}`, and takes self. The course calls a function of"
                " the file: move `{name}` out of the class, and leave self out."
            )
            raise make_refusal(
                "no_function", name, method, words.format(name=method.name, owner=node.name)
            )
    return True


def _find_needed(tree: ast.Module, wanted: list[str]) -> list[ast.stmt]:
    """Return the statements of the file that bind what ``wanted`` need, in the order of the
    file."""
    binds: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for bound_name in list_bound_in_file(node):
            binding_it = binds.setdefault(bound_name, [])
            if isinstance(node, Function | ast.ClassDef):  # the last definition counts
                binding_it[:] = [
                    other for other in binding_it if not isinstance(other, Function | ast.ClassDef)
                ]
            binding_it.append(node)
    kept: dict[int, ast.stmt] = {}
    waiting, seen = list(wanted), set(wanted)
    while waiting:
        for node in binds.get(waiting.pop(), ()):
            if id(node) in kept:
                continue
            kept[id(node)] = node
            new = _list_globals(node) - seen
            waiting += new
            seen |= new
    values = {
        bound_name
        for node in kept.values()
        if not isinstance(node, _DEFINITIONS)
        for bound_name in list_bound_in_file(node)
    }
    return [
        node
        for node in tree.body
        if id(node) in kept or _is_kept_always(node) or _fills(node, values & seen)
    ]


def list_bound_in_file(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of the file binds. What runs only in a program, and not in
    an import, binds none."""
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name for name, _path in list_imports(node))
    elif not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)) and not isinstance(
        node, ast.Expr
    ):
        inner: list[ast.AST] = [node]
        for part in inner:
            if isinstance(part, Function | ast.ClassDef):
                yield part.name
            elif isinstance(part, ast.Import | ast.ImportFrom):
                yield from (name for name, _path in list_imports(part))
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
            elif not isinstance(part, ast.Lambda):
                inner += ast.iter_child_nodes(part)


def _list_globals(node: ast.stmt) -> set[str]:
    """Return the names that the statement, and the functions in it, look up in the file. The
    statement is compiled, and never run."""
    try:
        codes = [compile(ast.Module([node], []), "<file>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError) as error:
        words = _("line {line}: this is not valid Python: {error}.")
        raise Unreadable(
            "syntax_error",
            words.format(line=node.lineno, error=error.args[0] if error.args else error),
        ) from None
    # Python does not evaluate the annotation of a local name, but the names in it count as well.
    notes = [
        note
        for part in ast.walk(node)
        for field in ("annotation", "returns")
        if (note := getattr(part, field, None))
    ]
    names = {name for note in notes for name in list_names(note)}
    compiled: set[str] = set()
    for code in codes:
        instructions = list(dis.get_instructions(code))
        names |= {i.argval for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        compiled |= {i.argval for i in instructions if isinstance(i.argval, str)} | {
            *code.co_varnames,
            *code.co_freevars,
        }
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    # Python compiles only one branch of `if False` and of `a if True else b`. The names of the
    # other branch count as well.
    return names | list_names(node) - compiled


def _is_kept_always(node: ast.stmt) -> bool:
    """Return True for an import from __future__, and for an import of all names by a star."""
    return isinstance(node, ast.ImportFrom) and (
        node.module == "__future__" or node.names[0].name == "*"
    )


def _fills(node: ast.stmt, values: set[str]) -> bool:
    """Return True for ``TABLE["a"] = 1`` and ``TABLE.update(...)`` of a TABLE in ``values``."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ):
        targets: list[ast.expr] = [node.value.func]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    else:
        return False
    return any(
        isinstance(target, ast.Subscript | ast.Attribute) and _find_root(target) in values
        for target in targets
    )


def _find_root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _keep_lines(text: str, keep: list[ast.stmt]) -> str:
    lines = split_lines(text)
    out = [""] * len(lines)
    taken: set[int] = set()
    for node in keep:
        first_line = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        last_line = node.end_lineno or node.lineno
        line = lines[last_line - 1].encode()
        shared = (
            bool(line[node.end_col_offset :].split(b"#")[0].strip())
            or node.col_offset > 0
            or first_line in taken
        )
        decorated = bool(getattr(node, "decorator_list", []))
        if decorated and not lines[first_line - 1].lstrip().startswith("@"):
            shared = True  # the decorator's expression begins on a line below its `@`
        if shared:  # its lines hold other code, too
            separator = "; " if out[first_line - 1].strip() else ""
            out[first_line - 1] += f"{separator}{ast.unparse(node)}"
        else:
            out[first_line - 1 : last_line] = lines[first_line - 1 : last_line]
        taken.update(range(first_line, last_line + 1))
    return "\n".join(out).rstrip("\n") + "\n"
