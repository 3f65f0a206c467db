"""What rules about code ask of a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SyntaxTree:
    """A syntax ``tree`` that knows what each node lies in."""

    tree: ast.Module

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def list_ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what ``node`` lies in, the innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent


def name_call(call: ast.Call) -> str:
    """Return the name of the function that is called, without what it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def list_names(node: ast.AST) -> set[str]:
    """Return the names in a node."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
