"""Runs what was cut out of a learner's file with the names that an exercise is open to, and no others.

What a dot or ``getattr`` leads to is looked up while the code runs, wherever a module came from: a variable, a list, an argument.
That keeps right and wrong code apart from the process that it runs in; who gets past it is still confined, and decides nothing.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import string
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.grading.submission import names
from course_lib.grading.submission.names import Closed, Names

_LOAD, _OWNER, _TEXT = "__course_load__", "__course_owner__", "__course_text__"
_HOME = "kernels"


class Refused(BaseException):
    """The code came to a name that the exercise is not open to. No ``except Exception`` of the code's own keeps it from being told."""


class Guard:
    """One file's. ``refusal`` is the first name that it was refused as it ran."""

    make_interpretable: Callable[[types.ModuleType], None] = staticmethod(
        lambda _: None
    )  # set where kernels are interpreted

    def __init__(self, rules: dict[str, Any]):
        self.names, self.file = Names(rules["kind"], rules["forbidden"]), rules["file"]
        self.given = rules.get("given", "")
        self.refusal: Refused | None = None
        self.code: types.CodeType | None = None

    def execute(self, module: types.ModuleType, path: Path) -> None:
        """Run the file at ``path`` as ``module``.

        Raises: Unreadable if it uses what the exercise is not open to; Refused if that shows only now.
        """
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
        tree.body[:0] = ast.parse(self.given).body  # imports that no line of the text has
        found = names.check(tree, self.names, self.file)
        code = compile(ast.fix_missing_locations(_Guarded(found).visit(tree)), str(path), "exec", dont_inherit=True)
        linecache.getlines(str(path))
        functools.update_wrapper = _update_wrapper  # type: ignore[assignment]  # functools.wraps goes by this name
        self.code = code
        self.renew(module)
        if self.names.kind == "kernel":
            self.make_interpretable(module)

    def renew(self, module: types.ModuleType) -> None:
        """Run the file's code in ``module``: in one that is new, nothing is left of what the file kept before."""
        vars(module).update({"__builtins__": self.make_builtins(), _LOAD: self.load, _OWNER: self.own, _TEXT: str})
        assert self.code is not None  # execute() has compiled it
        exec(self.code, vars(module))

    def make_builtins(self) -> dict[str, Any]:
        """Python's own names, as far as they are open."""
        open_ = {name: getattr(builtins, name) for name in names.OPEN_BUILTINS if hasattr(builtins, name)}
        return open_ | {
            "getattr": self.load, "hasattr": self.has, "setattr": self.set, "delattr": self.delete,
            # the libraries, too, import by the names of whoever calls them; what the file imports has been looked at
            "__import__": builtins.__import__, "__build_class__": self.build_class, "__name__": _HOME,
        }  # fmt: skip

    def refuse(self, why: object) -> Refused:
        refusal = Refused(names.end(str(why)))
        self.refusal = self.refusal or refusal
        return refusal

    def load(self, value: Any, name: str, *default: Any) -> Any:
        """``value.name``."""
        try:
            if isinstance(value, types.ModuleType):
                return self.names.find_member(value, name, now=True)
            own = _is_own(value)
            self.names.check_attribute(name, own)
            if not own and name in self.names.forbidden and _is_of_library(value):
                self.names.check_forbidden(name, f".{name}")
        except Closed as closed:
            if default and str(closed).startswith("there is no"):
                return default[0]
            raise self.refuse(closed) from None
        if name in ("format", "format_map") and (isinstance(value, str) or value is str):
            return functools.partial(self.format, value) if isinstance(value, str) else self.format
        return getattr(value, name, *default)

    def check_operation(self, name: str, in_autograd: bool) -> None:
        """Refuse an operation of PyTorch's that is a shortcut, whoever calls it: a module of torch.nn has others inside."""
        try:
            self.names.check_forbidden(name.rpartition("::")[2], name)
            if in_autograd:
                self.names.check_forbidden("backward", "backward")
        except Closed as closed:
            raise self.refuse(closed) from None

    def has(self, value: Any, name: str) -> bool:
        missing = object()
        return self.load(value, name, missing) is not missing

    def own(self, value: Any) -> Any:
        """``value``, whose attribute is about to be set."""
        kind = type(value)
        if isinstance(value, types.ModuleType | types.BuiltinFunctionType) or not (
            _is_own(value) or (kind.__module__.partition(".")[0] in ("torch", "numpy") and not isinstance(value, type))
        ):
            shown = getattr(value, "__name__", kind.__name__)
            raise self.refuse(f"an attribute of `{shown}` is set, which is not yours: everybody uses it")
        return value

    def set(self, value: Any, name: str, new: Any) -> None:
        self.load(value, name, None)
        setattr(self.own(value), name, new)

    def delete(self, value: Any, name: str) -> None:
        self.load(value, name, None)
        delattr(self.own(value), name)

    def format(self, text: str, *values: Any, **named: Any) -> str:
        """``text.format(...)``, but for fields with dots and brackets, which look into a value past every rule."""
        if any(field and ("." in field or "[" in field) for _, field, _, _ in string.Formatter().parse(text)):
            raise self.refuse("a format with a dot or a bracket in its field looks into a value; use an f-string")
        return text.format(*values, **named)

    def build_class(self, body: Any, name: str, *bases: Any, **named: Any) -> type:
        made = builtins.__build_class__(body, name, *bases, **named)
        if any(
            kind.__name__ in ("Tensor", "ndarray", "generic", "type", "module") and not _is_own(kind)
            for kind in made.__mro__
        ):
            raise self.refuse(
                f"`{name}` is a kind of {made.__mro__[1].__name__}, which takes over what is done with values"
            )
        return made


def _update_wrapper(wrapper: Any, wrapped: Any, *rest: Any, **named: Any) -> Any:
    """functools.update_wrapper, but for modules, whose names it would copy."""
    if isinstance(wrapped, types.ModuleType):
        raise TypeError("a module cannot be wrapped")
    return _wrap(wrapper, wrapped, *rest, **named)


_wrap = functools.update_wrapper


def _is_own(value: Any) -> bool:
    """True for a class or function of the file, and for an object of such a class."""
    home = vars(value).get("__module__") if isinstance(value, type) else getattr(value, "__module__", None)
    if isinstance(value, type | types.FunctionType):
        return home == _HOME
    return type(value).__module__ == _HOME


def _is_of_library(value: Any) -> bool:
    kind = value if isinstance(value, type) else type(value)
    return any(base.__module__.partition(".")[0] in ("torch", "numpy") for base in kind.__mro__)


class _Guarded(ast.NodeTransformer):
    """Every dot that was not looked up before goes through the guard. What Triton compiles stays as it is written."""

    def __init__(self, found: names.Checked):
        self.found = found

    def visit(self, node: ast.AST) -> Any:
        return node if node in self.found.jitted else super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node in self.found.resolved:
            return node
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            load = ast.Name(_LOAD, ast.Load())
            call = ast.Call(load, [value, ast.Constant(node.attr)], [])
            return ast.copy_location(call, node)
        node.value = ast.copy_location(ast.Call(ast.Name(_OWNER, ast.Load()), [value], []), node.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """``assert x, type(x)`` says the type in words: the AssertionError would hand the type itself to whoever catches it."""
        self.generic_visit(node)
        if node.msg is not None:
            node.msg = ast.copy_location(ast.Call(ast.Name(_TEXT, ast.Load()), [node.msg], []), node.msg)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = _make_harmless(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = _make_harmless(node.returns)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = _make_harmless(node.annotation) or node.annotation
        return self.generic_visit(node)


def _make_harmless(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation as text: a program can ask for the types in it, and an array's type makes arrays over any memory."""
    return annotation and ast.copy_location(ast.Constant(ast.unparse(annotation)), annotation)
