"""Rewrite a kernel before the interpreter runs it, so that its Python means what it means to
Triton's compiler.

Apart from plain assignments, the stock interpreter runs the text of a kernel as Python.
:mod:`meaning` has functions for the compiler's meaning of loops, conditions, ``and``, ``or``,
``not``, assignments and Python's own functions; here the text is changed to call them. Every node
keeps its position, so that a message names the right line.

The stock rewriter has three more faults, which this one does not have. It puts ``np``, ``ast`` and
more into the kernel's module, so that a missing import is not noticed. It takes the last line that
begins with ``def``, also one in a docstring, for that of the kernel. It loses the variables of a
function around a kernel.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Generator, Sequence
from types import FunctionType
from typing import Any

import triton.language as tl

from course_lib.base.closures import read_closure
from course_lib.base.translation import gettext as _
from course_lib.interpreter import meaning

HIDDEN = "__triton_meaning__"  # this name and the next two are added to the module of a kernel
LANGUAGE = "__triton_language__"
PAUSE = "__triton_pause__"


def rewrite_kernels() -> None:
    """Make the interpreter run rewritten kernels and helpers.

    Raises: AttributeError if this Triton's interpreter rewrites in another way.
    """
    from triton.runtime import interpreter

    getattr(interpreter.FunctionRewriter, "rewrite_ast")  # noqa: B009 - raises AttributeError if this Triton has no such function
    stock_core = interpreter._patch_lang_core

    def _patch_lang_core(language, scope):
        stock_core(language, scope)
        scope.set_attr(language, "range", meaning.runtime_range)
        scope.set_attr(language, "static_range", meaning.static_range)

    def rewrite_ast(self):
        return rewrite(self.fn)

    interpreter._patch_lang_core = _patch_lang_core
    interpreter.FunctionRewriter.rewrite_ast = rewrite_ast


@functools.cache
def make_pausing(function: FunctionType) -> Callable[..., Generator[bool, None, Any]]:
    """Return the function as a generator function that yields before each load, store, atomic and
    barrier, also of its helpers.

    It yields whether the kernel drops the operation's result.

    A memory operation in a comprehension, and one of a function whose source cannot be found, is
    made without a yield before it.
    """
    pausing = rewrite(function, pausing=True)
    if inspect.isgeneratorfunction(pausing):
        return pausing

    @functools.wraps(function)
    def run_whole(*arguments: Any, **named: Any) -> Generator[bool, None, Any]:
        yield from ()
        return pausing(*arguments, **named)

    return run_whole


def rewrite(function: FunctionType, pausing: bool = False) -> Callable:
    """Return the function as the interpreter has to run it; the function itself if its source
    cannot be found.

    With ``pausing`` the function is a generator function if it calls anything, see
    :func:`make_pausing`.
    """
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return function
    tree = ast.parse(textwrap.dedent("".join(lines)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    ast.increment_lineno(tree, max(first_line, 1) - 1)
    outer = read_closure(function)
    definition.decorator_list = []
    dropped = _find_dropped_results(definition)
    definition.body = _Rewriter(definition, function.__globals__, outer).rewrite_body()
    if pausing:
        definition.body = [_Pauser(dropped).visit(statement) for statement in definition.body]
    factory = ast.FunctionDef(
        name="factory",
        args=ast.arguments([], [ast.arg(name) for name in outer], None, [], [], None, []),
        body=[definition, ast.Return(ast.Name(definition.name, ast.Load()))],
        decorator_list=[],
    )
    setattr(factory, "type_params", [])  # noqa: B010 - Python 3.12 and newer need it; 3.11 does not have it
    module = ast.Module([ast.copy_location(factory, definition)], [])
    ast.fix_missing_locations(module)
    hidden: dict[str, Any] = {HIDDEN: meaning, LANGUAGE: tl}
    if pausing:
        hidden[PAUSE] = functools.partial(meaning.pause, make_pausing)
    function.__globals__.update(hidden)
    namespace: dict[str, Any] = {}
    exec(
        compile(module, function.__code__.co_filename, "exec", dont_inherit=True),
        function.__globals__,
        namespace,
    )
    return namespace["factory"](**outer)


class _Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function. ``outer`` has the variables of the functions around it."""

    def __init__(self, definition: ast.FunctionDef, module: dict[str, Any], outer: dict[str, Any]):
        self.definition, self.known = definition, {**module, **outer}
        arguments = definition.args
        self.local = {
            argument.arg
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        }
        # The tests of the `if`s around a `return`. What the function returns there depends on
        # values, or on constants alone.
        deciding = [
            node
            for node in ast.walk(definition)
            if isinstance(node, ast.If)
            and any(isinstance(part, ast.Return) for part in ast.walk(node))
        ]
        self.tests = {f"__triton_test_{number}": node for number, node in enumerate(deciding)}
        self.local |= {
            node.id
            for node in ast.walk(definition)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    def rewrite_body(self) -> list[ast.stmt]:
        body = [self.visit(statement) for statement in self.definition.body]
        first_statement = self.definition.body[0]
        unasked = [
            _spread(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)), first_statement)
            for name in self.tests
        ]
        return [*unasked, *body]

    # ---- statements

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if len(node.targets) > 1:
            refusal = _call(
                "refuse",
                node,
                ast.Constant(_("a = b = value is not Triton; write one assignment for each name")),
            )
            return _place(ast.Expr(refusal), node)
        node.value = _call("assign", node.value, node.value)
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            node.value = _call(
                "unpack", node.value, node.value, ast.Constant(len(node.targets[0].elts))
            )
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = _call("assign_as", node.value, node.annotation, self.visit(node.value))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)  # Triton does not support it; Python raises the error
            return node
        before = _place(ast.Name(node.target.id, ast.Load()), node.target)
        value = _place(ast.BinOp(before, node.op, self.visit(node.value)), node)
        return _place(ast.Assign([node.target], _call("assign", node, value)), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        name = next((name for name, deciding in self.tests.items() if deciding is node), None)
        self.generic_visit(node)
        test = node.test
        if name is not None:
            test = _place(ast.NamedExpr(_place(ast.Name(name, ast.Store()), test), test), test)
        node.test = _call("condition", test, test)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        self.generic_visit(node)
        if node.value is not None and self.tests:
            tests = [_place(ast.Name(name, ast.Load()), node.value) for name in self.tests]
            node.value = _call("returned", node.value, node.value, *tests)
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        self.generic_visit(node)
        node.test = _call("still", node.test, node.test)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            node.iter = _call(
                "loop", node.iter, node.iter.func, *node.iter.args, keywords=node.iter.keywords
            )
        else:
            node.iter = _call("loop", node.iter, node.iter)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Rewrite to tl.device_assert, which only evaluates its operands unless a kernel is
        compiled for debugging."""
        self.generic_visit(node)
        operands: list[ast.expr] = [node.test] if node.msg is None else [node.test, node.msg]
        return _place(ast.Expr(_place(ast.Tuple(operands, ast.Load()), node)), node)

    # ---- expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        is_and = ast.Constant(isinstance(node.op, ast.And))
        return _call("logical", node, is_and, *(_later(operand) for operand in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("negate", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return _call("choose", node, node.test, _later(node.body), _later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        joined = next((ast.unparse(part) for part in node.comparators[:-1] if _joins(part)), "")
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return node
            same = _call("is_same", node, node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.Is):
                return same
            return _place(ast.UnaryOp(ast.Not(), same), node)
        words = _(
            "Triton does not compile a comparison of more than two, as in a <= b < c; write (a <="
            " b) & (b < c)"
        )
        if joined:
            words = _(
                "`&` and `|` bind tighter than a comparison, so this line compares with"
                " `{joined}`; write each comparison in parentheses, as in (a < b) & (c < d)"
            ).format(joined=joined)
        return _call("refuse", node, ast.Constant(words))

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return _place(ast.Tuple(node.elts, node.ctx), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        return _place(ast.Tuple([_place(ast.Starred(node, ast.Load()), node)], ast.Load()), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr == "value" and isinstance(node.ctx, ast.Load):
            return _call("value_of", node, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        self.generic_visit(node)
        if name in meaning.FUNCTIONS and name not in self.local and name not in self.known:
            node.func = _at(f"FUNCTIONS[{name!r}]", node.func)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id in self.local:
            return node
        if node.id in self.known:
            return self._name_of_the_language(node, self.known[node.id])
        if node.id in meaning.UNKNOWN_FUNCTIONS:
            return _call("unknown", node, ast.Constant(node.id))
        return node

    def _name_of_the_language(self, node: ast.Name, value: Any) -> ast.expr:
        """Rewrite the ``load`` of ``from triton.language import load`` to an attribute, because a
        launch replaces only attributes."""
        if not tl.core.is_builtin(value):
            return node
        language: ast.expr = ast.Name(LANGUAGE, ast.Load())
        if value.__module__ == tl.math.__name__:
            language = ast.Attribute(language, "math", ast.Load())
        elif getattr(tl, value.__name__, None) is not value:
            return node
        return _spread(ast.Attribute(language, value.__name__, ast.Load()), node)


class _Pauser(ast.NodeTransformer):
    """Makes a generator of a rewritten body: every call of the kernel becomes a ``yield from`` of
    :func:`meaning.pause`.

    ``dropped`` has the calls whose results the kernel drops.
    """

    def __init__(self, dropped: Sequence[ast.Call]):
        self.dropped = dropped

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == HIDDEN:
            if function.attr not in ("logical", "choose"):
                return node
            function.attr = f"pause_{function.attr}"
            return _place(ast.YieldFrom(node), node)
        name = getattr(function, "attr", "")
        uses_memory = ast.Constant(
            name in ("load", "store", "debug_barrier") or name.startswith("atomic_")
        )
        drops_result = ast.Constant(any(call is node for call in self.dropped))
        arguments = [uses_memory, drops_result, function, *node.args]
        pause = ast.Call(ast.Name(PAUSE, ast.Load()), arguments, node.keywords)
        for part in (pause, pause.func, uses_memory, drops_result):
            _place(part, node)
        return _place(ast.YieldFrom(pause), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return node  # Python has no yield in a comprehension


def _find_dropped_results(definition: ast.FunctionDef) -> list[ast.Call]:
    """List the calls whose results nothing reads: a call that is a statement, or whose result goes
    to a name that is never read."""
    nodes = list(ast.walk(definition))
    names_read = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    dropped = []
    for node in nodes:
        if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else []
        if all(isinstance(target, ast.Name) and target.id not in names_read for target in targets):
            dropped.append(node.value)
    return dropped


def _joins(node: ast.expr) -> bool:
    """Return True for ``a & b`` and ``a | b``."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))


def _call(
    function: str, like: ast.AST, *arguments: ast.expr, keywords: list[ast.keyword] | None = None
) -> ast.Call:
    """Make a call of ``function`` of :mod:`meaning`, at the position of ``like``."""
    target = ast.Attribute(ast.Name(HIDDEN, ast.Load()), function, ast.Load())
    call = ast.Call(target, list(arguments), keywords or [])
    for node in (call, target, target.value, *arguments):
        if not hasattr(node, "lineno"):
            _place(node, like)
    return call


def _at(expression: str, like: ast.AST) -> ast.expr:
    return _spread(ast.parse(f"{HIDDEN}.{expression}", mode="eval").body, like)


def _spread(node: Any, like: ast.AST) -> Any:
    for part in ast.walk(node):
        _place(part, like)
    return node


def _place(node: Any, like: ast.AST) -> Any:
    return ast.copy_location(node, like)


def _later(expression: ast.expr) -> ast.Lambda:
    return _place(ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression), expression)
