"""Find the line of the learner's file that the evidence points to. Without evidence there is no
line.

Columns are counted as Python's ``ast`` counts them, in bytes of UTF-8, until a :class:`Place` is
made for people.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from course_lib.grading.verdict import Place


class Span(NamedTuple):
    """Part of one line: ``line`` from 1, ``start`` and ``end`` in bytes from 0. ``end`` is None for
    "to the end of the line", ``start`` is None where only the line is known."""

    line: int
    start: int | None = None
    end: int | None = None


# the syntax nodes that have a line and columns
Located = ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias | ast.excepthandler | ast.pattern


def find_span(node: Located) -> Span:
    """Return the place of a node; for a node over several lines its part of the first line."""
    return Span(
        node.lineno,
        node.col_offset,
        node.end_col_offset if node.end_lineno == node.lineno else None,
    )


def find_statement(tree: ast.Module, node: ast.expr | ast.stmt) -> ast.stmt:
    """Return the innermost statement of ``tree`` that holds ``node``."""
    return [
        statement
        for statement in ast.walk(tree)
        if isinstance(statement, ast.stmt) and any(part is node for part in ast.walk(statement))
    ][-1]


def split_lines(text: str) -> list[str]:
    """Return the lines as Python counts them. str.splitlines also ends a line at a form feed or
    U+2028, which a comment may hold."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def make_place(file: str, text: str, span: Span, label: str = "") -> Place | None:
    """Make a place for people out of ``span``; None if ``text`` has no such line, or the line is
    empty."""
    lines = split_lines(text)
    if not 1 <= span.line <= len(lines) or not lines[span.line - 1].strip():
        return None
    source = lines[span.line - 1]
    if span.start is None:
        return Place(file, span.line, source, label=label)
    start = _count_characters(source, span.start)
    end = _count_characters(source, span.end) if span.end is not None else len(source.rstrip())
    return Place(file, span.line, source, start, max(end, start + 1), label)


def list_parameters(text: str, function: str) -> tuple[str, ...]:
    """Return the parameter names of a function of ``text``."""
    found = next(
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    return tuple(argument.arg for argument in (*found.args.posonlyargs, *found.args.args))


def find_store(
    tree: ast.Module, entry_points: tuple[str, ...], entry_point: str, argument: int
) -> Span | None:
    """Find the ``tl.store`` through the pointer that ``entry_point`` takes as argument number
    ``argument``.

    Return None unless it is the only access that writes through a pointer of this name, in the
    entry point and in the helpers that it may call: of two such accesses either may be wrong.
    """
    store = find_only_store(tree, entry_points, entry_point, argument)
    return store and find_span(store[1])


def find_assignment_of_stored(
    tree: ast.Module,
    entry_points: tuple[str, ...],
    entry_point: str,
    argument: int,
    others: frozenset[str] = frozenset(),
) -> Span | None:
    """Find the assignment of the value that the store stores which :func:`find_store` finds.

    Return None if there is no such store, or if the value is computed in the store itself or in
    several steps. Return None as well if the value has the name of one of the ``others``: then the
    store is wrong, not the value.
    """
    found = find_only_store(tree, entry_points, entry_point, argument)
    if found is None:
        return None
    function, call = found
    value = find_stored(call)
    return value and _find_only_assignment(function, value, others)


def find_stored(call: ast.Call) -> ast.expr | None:
    """Return the value that a store stores."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "value"]
    values += [argument for argument in call.args if argument is not _find_address(call)][:1]
    return values[0] if values else None


def find_assignment_of_returned(
    tree: ast.Module, function: str, number: int, count: int, others: frozenset[str] = frozenset()
) -> Span | None:
    """Find the assignment of value ``number`` of the ``count`` values that ``function`` returns.

    Return None if the value is computed in the ``return`` or in several steps, or if there are
    several returns. ``others``: as for :func:`find_assignment_of_stored`.
    """
    value = find_returned(tree, function, number, count)
    if value is None:
        return None
    [home] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return _find_only_assignment(home, value, others)


def find_returned(tree: ast.Module, function: str, number: int, count: int) -> ast.expr | None:
    """Find the expression of value ``number`` of the ``count`` values that ``function`` returns.

    Return None if there are several returns, or if the text does not show the value.
    """
    found = _list_returns(tree, function)
    if len(found) != 1 or (value := found[0].value) is None:
        return None
    if count == 1:
        return value
    return value.elts[number] if isinstance(value, ast.Tuple) and len(value.elts) == count else None


def _find_only_assignment(
    function: ast.FunctionDef, value: ast.expr, others: frozenset[str]
) -> Span | None:
    """Find the only assignment to the name that ``value`` is without its casts.

    If the name is assigned another name, find the assignment of the other one.
    """
    found: ast.Assign | ast.AnnAssign | None = None
    parameters = {
        argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
    }
    for _ in range(_MOST_NAMES):
        value = strip_casts(value)
        if not isinstance(value, ast.Name) or value.id in parameters:
            break
        if value.id in others:
            return None
        simple = _list_simple_assignments(function, value.id)
        if len(simple) != 1 or simple[0].value is None:
            break
        found, value = simple[0], simple[0].value
    return found and find_span(found)


def _list_simple_assignments(
    function: ast.FunctionDef, name: str
) -> list[ast.Assign | ast.AnnAssign]:
    """Return the assignments that bind ``name`` at its only place, and nothing else but what the
    same call returns beside it."""
    bound = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == name and not _is_read(n)
    ]
    return [
        n
        for n in ast.walk(function)
        if (isinstance(n, ast.Assign) and (n.targets == bound or _unpacks_call(n, bound)))
        or (isinstance(n, ast.AnnAssign) and [n.target] == bound)
    ]


def _unpacks_call(statement: ast.Assign, bound: list[ast.Name]) -> bool:
    """Return True for ``a, b = call()``, where ``bound`` is either a or b."""
    [target, *more] = statement.targets
    is_unpacked = isinstance(target, ast.Tuple) and len(bound) == 1 and bound[0] in target.elts
    return is_unpacked and not more and isinstance(statement.value, ast.Call)


_CASTS = ("to", "astype", "type", "contiguous", "view", "reshape")


def strip_casts(value: ast.expr) -> ast.expr:
    """Return the value without operations that change only its dtype or shape; for ``a if b else
    None`` return a."""
    while True:
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in _CASTS
        ):
            value = value.func.value
        elif isinstance(value, ast.IfExp):
            value = value.body
        else:
            return value


_MOST_NAMES = 5


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def list_functions_of(
    tree: ast.Module, entry_points: tuple[str, ...], entry_point: str
) -> list[ast.FunctionDef]:
    """Return the functions that run for ``entry_point``: itself, the helpers, and the other entry
    points that these name."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    running = [f for f in functions if f.name == entry_point or f.name not in entry_points]
    for function in running:
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        running += [f for f in functions if f.name in names and f not in running]
    return [function for function in functions if function in running]


def find_only_store(
    tree: ast.Module, entry_points: tuple[str, ...], entry_point: str, argument: int
) -> tuple[ast.FunctionDef, ast.Call] | None:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    kernel = next(function for function in functions if function.name == entry_point)
    parameters = [*kernel.args.posonlyargs, *kernel.args.args]
    if argument >= len(parameters):
        return None
    pointer = parameters[argument].arg
    writes = [
        (function, call, access_kind)
        for function in functions
        if function is kernel or function.name not in entry_points
        for call, access_kind in _list_accesses(function)
        if access_kind != "load"
        and any(
            isinstance(part, ast.Name) and part.id == pointer
            for part in ast.walk(_find_address(call))
        )
    ]
    return writes[0][:2] if len(writes) == 1 and writes[0][2] == "store" else None


def find_return(tree: ast.Module, function: str) -> Span | None:
    """Find the ``return`` of a function; return None if it has several or none."""
    returns = _list_returns(tree, function)
    return find_span(returns[0]) if len(returns) == 1 else None


def _list_returns(tree: ast.Module, function: str) -> list[ast.Return]:
    waiting: list[ast.AST] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    returns: list[ast.Return] = []
    for node in waiting:
        returns += [node] if isinstance(node, ast.Return) else []
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, (ast.FunctionDef, ast.Lambda))
        ]
    return returns


def find_function(tree: ast.Module, function: str) -> Span | None:
    """Find the ``def`` line of ``function``; return None if it is not defined by ``def``."""
    lines = [
        node.lineno
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return Span(lines[-1]) if lines else None


def find_function_without_return(tree: ast.Module, function: str) -> Span | None:
    """Find the ``def`` line of a function without ``return``; return None if it has one, or does
    not exist."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (
                None
                if any(isinstance(part, ast.Return) for part in ast.walk(node))
                else Span(node.lineno, node.col_offset)
            )
    return None


def find_access(tree: ast.Module, line: int, kind: str) -> Span:
    """Find the access to memory in that line, if there is exactly one; else return the line."""
    call = find_only_access(tree, line, kind)
    return find_span(call) if call else Span(line)


def find_only_access(tree: ast.Module, line: int, kind: str) -> ast.Call | None:
    """Find the access to memory in that line, if there is exactly one. ``kind``: "load", "store",
    or any other word for any access."""
    calls = [
        call
        for call, access_kind in _list_accesses(tree)
        if call.lineno == line and (kind not in ("load", "store") or access_kind == kind)
    ]
    return calls[0] if len(calls) == 1 else None


def _list_accesses(tree: ast.AST) -> list[tuple[ast.Call, str]]:
    """Return each access to memory, with the name of what it calls: "load", "store", "atomic_add"
    and so on."""
    return [
        (node, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in ("load", "store") or node.func.attr.startswith("atomic_"))
    ]


def _find_address(call: ast.Call) -> ast.AST:
    """Return the pointer of an access: the argument named ``pointer``, or the first one. For
    ``p.store(x)`` it is p."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if not (isinstance(owner, ast.Name) and owner.id == "tl"):
        return owner
    return next(
        (keyword.value for keyword in call.keywords if keyword.arg == "pointer"),
        call.args[0] if call.args else call,
    )


def _count_characters(source: str, column: int) -> int:
    return len(source.encode()[:column].decode(errors="ignore"))
