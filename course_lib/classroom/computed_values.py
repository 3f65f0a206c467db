"""The values that a file computes, as a set of numbers, for the comparison of files.

The method is value numbering, by which compilers find equal expressions (Alpern, Wegman and Zadeck
1988, "Detecting Equality of Variables in Programs"). A name stands for the value that it was given,
a call of the file's own function for what the function returns, and the operands of a sum or a
product have no order. So other names, lines, helper functions and another order of the statements
leave the values as they are. A name that changes in a loop is the same unknown value in all files.

The file is parsed and not run.
"""

from __future__ import annotations

import ast
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence

_MOST_NODES = 200_000  # a file whose functions call one another can have endlessly many values
_COMMUTATIVE = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
Names = dict[str, int]  # the values of the names at one place of the file


def number_values(data: bytes) -> frozenset[int]:
    """Return the numbers of the values that a file computes.

    There are none if Python cannot parse the file: then it cannot pass a check either. The same
    goes for one that is nested too deeply for the parser, or for this module.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape in a string is the learner's matter
            return frozenset(_Numbering(ast.parse(data)).values)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return frozenset()


def _hash(*parts: object) -> int:
    # crc32 is equal on every machine and in every process, unlike Python's own hash
    return zlib.crc32(repr(parts).encode("utf-8", "surrogatepass"))


_UNKNOWN = _hash("unknown")


class _Numbering:
    """The numbering of one file."""

    def __init__(self, tree: ast.Module):
        self.values: set[int] = set()
        nodes = list(ast.walk(tree))
        self._functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        self._bound = set(_list_bound(nodes))
        self._returned: dict[tuple[str, tuple[int, ...]], int] = {}
        self._running: list[str] = []
        self._nodes_left = _MOST_NODES
        self._globals: Names = {}
        self._run(tree.body, self._globals)
        called = {
            node.func.id
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        # those that nothing calls first: they number what they call with its arguments
        for name in sorted(self._functions, key=lambda name: name in called):
            if name not in {numbered for numbered, _ in self._returned}:
                count = len(_list_parameters(self._functions[name]))
                self._return_of(name, [_hash("parameter", n) for n in range(count)])

    def _run(self, statements: Iterable[ast.AST], names: Names) -> int:
        """Number all expressions of the statements, update ``names``, and return the value that
        they return."""
        returned = _UNKNOWN
        for statement in statements:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    pass  # numbered where it is called, or at the end
                case ast.Import() | ast.ImportFrom():
                    names |= _number_imports(statement)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, value, names)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, value, names)
                case ast.AugAssign(target=target, op=operator, value=value):
                    self._assign(target, ast.BinOp(target, operator, value), names)
                case ast.Return(value=ast.expr() as value):
                    returned = self._number(value, names)
                case ast.For() | ast.While():
                    changed = dict.fromkeys(_list_bound(ast.walk(statement)), _UNKNOWN)
                    names |= changed
                    self._run(ast.iter_child_nodes(statement), names)
                    names |= changed
                case ast.expr():
                    self._number(statement, names)
                case _:
                    self._run(ast.iter_child_nodes(statement), names)
        return returned

    def _assign(self, target: ast.expr, value: ast.expr, names: Names) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                numbers = [self._number(part, names) for part in value.elts]
            else:
                whole = self._number(value, names)
                numbers = [_hash("item", n, whole) for n in range(len(target.elts))]
            for part, number in zip(target.elts, numbers, strict=True):
                self._store(part, number, names)
        else:
            self._store(target, self._number(value, names), names)

    def _store(self, target: ast.expr, number: int, names: Names) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = number
        else:
            self.values.add(_hash("store", self._number(target, names), number))

    def _number(self, node: ast.AST, names: Names) -> int:
        """Return the value of an expression, or of a part of one."""
        self._nodes_left -= 1
        match node:
            case ast.Name(id=name):
                return names.get(name, _UNKNOWN if name in self._bound else _hash(name))
            case ast.Constant(value=str() | bytes()):
                return _hash("text")
            case ast.Constant(value=value):
                return _hash(repr(value).removesuffix(".0"))
            case ast.BinOp(left=left, op=operator, right=right):
                operands = [self._number(left, names), self._number(right, names)]
                if isinstance(operator, _COMMUTATIVE):
                    operands.sort()
                number = _hash(type(operator).__name__, *operands)
            case ast.Attribute(value=value, attr=attribute):
                number = _hash("attribute", self._number(value, names), attribute)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                numbers = [self._number(argument, names) for argument in arguments]
                options = {word.arg: self._number(word.value, names) for word in keywords}
                if isinstance(function, ast.Name) and self._can_follow(function.id):
                    return self._return_of(function.id, numbers, options)
                called = self._number(function, names)
                number = _hash("call", called, *numbers, *sorted(options.values()))
            case _:
                parts = [self._number(child, names) for child in ast.iter_child_nodes(node)]
                number = _hash(type(node).__name__, *parts)
                if not isinstance(node, ast.expr):
                    return number
        self.values.add(number)
        return number

    def _can_follow(self, name: str) -> bool:
        return name in self._functions and name not in self._running and self._nodes_left > 0

    def _return_of(
        self, name: str, numbers: Sequence[int], options: dict[str | None, int] | None = None
    ) -> int:
        """Number the values of one of the file's functions for these arguments, and return the
        value that it returns."""
        parameters = _list_parameters(self._functions[name])
        given = dict(zip(parameters, numbers, strict=False)) | (options or {})
        arguments = {parameter: given.get(parameter, _UNKNOWN) for parameter in parameters}
        key = name, tuple(arguments.values())
        if key not in self._returned:
            self._running.append(name)
            self._returned[key] = self._run(self._functions[name].body, self._globals | arguments)
            self._running.pop()
        return self._returned[key]


def _list_parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _list_bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each name that the file itself gives a value."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _number_imports(statement: ast.Import | ast.ImportFrom) -> Names:
    """Return the imported names with their values: of one thing it is the same, whatever it is
    called here."""
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: _hash(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in statement.names
        }
    module = _hash(statement.module)
    return {
        alias.asname or alias.name: _hash("attribute", module, alias.name)
        for alias in statement.names
    }
