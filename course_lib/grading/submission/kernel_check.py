"""Check that a file of kernels holds nothing but kernels, before the process that observes launches
runs it.

In CPU mode Triton's interpreter runs a kernel as Python, in the process that counts reads, orders
and races. So that process runs nothing of a file but this: jitted functions, whose statements and
names Triton's compiler knows; functions that the compiler calls with constants
(``@triton.constexpr_function``), which only calculate; and constants that are literals or
arithmetic with them.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import math
import symtable
import tokenize
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.grading.submission import needed
from course_lib.grading.submission.places import Located, split_lines
from course_lib.grading.submission.source import make_refusal

_MODULES = frozenset(
    """triton triton.language triton.language.core triton.language.extra triton.language.extra.cuda
    triton.language.extra.cuda.libdevice triton.language.extra.libdevice triton.language.math triton.language.random
    triton.language.standard""".split()  # noqa: E501
)
_OF_TRITON = frozenset("jit cdiv next_power_of_2 constexpr_function language".split())
_DECORATORS = frozenset({"jit", "constexpr_function"})
_PAST_TRITON = frozenset("inline_asm_elementwise extern_elementwise dispatch extern".split())
# modules whose numbers and functions a constant may use
_CALCULATING = frozenset({"math", "numpy"})
_BUILTINS_OF_KERNELS = frozenset(
    "range min max abs float int bool len list tuple isinstance print".split()
)
_BUILTINS_OF_CONSTANTS = frozenset(
    "range min max abs float int bool len list tuple sum round pow divmod sorted enumerate zip".split()  # noqa: E501
)
# builtins whose result can change; and those that turn such a value into one that cannot
_MAKE_CHANGEABLE = frozenset("list sorted enumerate zip".split())
_CONSUME = frozenset("tuple min max sum len".split())
# Triton sets these on instances, so its classes do not list them
_ATTRIBUTES_OF_INSTANCES = frozenset(
    """shape numel type dtype value values name element_ty scalar strides block_shape primitive_bitwidth int_bitwidth
    int_signedness address_space const load store gather scatter""".split()  # noqa: E501
)
_ATTRIBUTES_OF_CONSTANTS = frozenset("value bit_length primitive_bitwidth".split())
# The interpreter runs these parts of Python. If the compiler refuses one of them, its own message
# is shown.
_ALSO_RUN = (
    ast.Break, ast.Continue, ast.Starred, ast.FormattedValue, ast.Assert, ast.Slice, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.arguments, ast.arg, ast.keyword, ast.comprehension,
)  # fmt: skip
_OF_CONSTEXPR_FUNCTIONS = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign,
    ast.For, ast.While, ast.If, ast.Expr,
    ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.expr, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop,
    ast.keyword, ast.comprehension, ast.Slice,
)  # fmt: skip


def check(tree: ast.Module, text: str, file: str) -> None:
    """Check what was cut out of ``file``, as ``text`` and parsed. Put single imports in place of
    ``from triton.language import *``.

    Raises: Unreadable, with the line, at the first statement that is neither a kernel nor a
    constant, or at the first undefined name.
    """
    _expand_stars(tree)
    _FileCheck(tree, text, file).run()


def _expand_stars(tree: ast.Module) -> None:
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(
        list_bound(tree)
    )
    for node in tree.body:
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "triton.language"
            and node.names[0].name == "*"
        ):
            import triton.language as tl

            # an import needs at least one name
            used_names = sorted(used.intersection(tl.__all__)) or ["float32"]
            node.names = [ast.copy_location(ast.alias(name), node.names[0]) for name in used_names]


class _Closed(Exception):
    """A name that a kernel cannot use. ``str()`` says why, as a sentence."""


def find_member(module: ModuleType, name: str) -> Any:
    """Return what ``name`` stands for in a module of Triton's, if a kernel may use it.

    Raises: _Closed.
    """
    path = module.__name__
    word = f"{'tl' if path == 'triton.language' else path}.{name}"
    if name.startswith("_"):
        raise _Closed(_("`{name}` is private to Triton.").format(name=word))
    if name in _PAST_TRITON:
        raise _Closed(
            _(
                "`{name}` cannot be used in an exercise: it goes past Triton, where nothing can be"
                " checked."
            ).format(name=word)
        )
    try:
        value = getattr(module, name)
    except AttributeError:
        if f"{path}.{name}" in _MODULES:  # a module that is not imported yet
            return importlib.import_module(f"{path}.{name}")
        raise _Closed(_("there is no `{name}`. Is it mistyped?").format(name=word)) from None
    if isinstance(value, ModuleType):
        if value.__name__ not in _MODULES:
            raise _Closed(_("`{name}` is no part of Triton's language.").format(name=word))
        return value
    if not _is_of_language(path, name, value):
        raise _Closed(_("`{name}` is no part of Triton's language.").format(name=word))
    return value


def _is_of_language(path: str, name: str, value: Any) -> bool:
    if path == "triton":
        return name in _OF_TRITON
    import triton.language as tl

    if isinstance(value, bool | int | float | str) or type(value).__module__.startswith(
        "triton.language"
    ):
        return True
    if name in tl.__all__ or hasattr(value, "fn"):
        return True
    if path.startswith("triton.language.extra") and callable(value):
        # in CPU mode these are functions of the interpreter, whose module has another name
        return True
    return str(getattr(value, "__module__", "")).startswith("triton.language")


class _FileCheck:
    def __init__(self, tree: ast.Module, text: str, file: str):
        self.tree, self.file = tree, file
        self.lines = [f"{line}\n" for line in split_lines(text)]
        self.parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self.imports = dict(needed.list_imports(tree))
        self.bound = {name for node in tree.body for name in _list_bound_by(node)}
        self.before: set[str] = set()  # names that the statements above have bound
        self.kernels = [node for node in ast.walk(tree) if needed.is_jitted(node, self.imports)]
        self.constexpr_functions = {
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and _asks_for_constexpr(node)
        }
        self.functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} - {
            getattr(node, "name", "") for node in {*self.kernels, *self.constexpr_functions}
        }
        # No constant calls these: what they return could change.
        self.run_by_python = self.functions | {node.name for node in self.constexpr_functions}

    def refuse(self, node: ast.AST, what: str, cause: str = "not_allowed"):
        while not isinstance(node, Located):
            node = self.parents[node]
        raise make_refusal(cause, self.file, node, what)

    def run(self) -> None:
        for node in self.kernels:
            _KernelCheck(self, node).run()
        # Python functions come last: the message about a kernel that calls one helps more.
        for node in sorted(
            self.tree.body, key=lambda node: getattr(node, "name", "") in self.functions
        ):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._check_import(node)
            elif isinstance(node, ast.FunctionDef) and node in self.kernels:
                self.check_evaluated(node)
            elif isinstance(node, ast.FunctionDef) and node in self.constexpr_functions:
                self.check_evaluated(node)
                _ConstexprCheck(self, node).run()
            else:
                self._check_constant(node)
            self.before.update(_list_bound_by(node))

    def _check_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return
        for name, path in needed.list_imports(node):
            if self.imports[name] != path:
                self.refuse(
                    node,
                    _("`{name}` is imported as two things, `{path}` and `{other}`.").format(
                        name=name, path=path, other=self.imports[name]
                    ),
                )
            if path in _CALCULATING or path == "math.*" or _calculates(path):
                continue
            if name == "*" or path.partition(".")[0] != "triton":
                self.refuse(
                    node,
                    _(
                        "`{name}` is an import of Python's; inside a kernel there are `tl` and"
                        " `triton` only."
                    ).format(name=path),
                )
            self.find(node, path)

    def find(self, node: ast.AST, path: str) -> Any:
        """Return what the dotted ``path`` of an import stands for in Triton."""
        if path in _MODULES:
            return importlib.import_module(path)
        module, _dot, name = path.rpartition(".")
        try:
            if module not in _MODULES:
                raise _Closed(_("`{name}` is no part of Triton's language.").format(name=path))
            return find_member(importlib.import_module(module), name)
        except _Closed as closed:
            return self.refuse(node, str(closed))

    def resolve(self, node: ast.expr) -> Any:
        """Return what a dotted name stands for if it begins with an import of Triton; None for any
        other."""
        if isinstance(node, ast.Name):
            path = self.imports.get(node.id, "")
            return (
                self.find(node, path)
                if path.partition(".")[0] == "triton" and node.id not in self.bound
                else None
            )
        if isinstance(node, ast.Attribute) and isinstance(
            owner := self.resolve(node.value), ModuleType
        ):
            try:
                return find_member(owner, node.attr)
            except _Closed as closed:
                self.refuse(node, str(closed))
        return None

    def _check_constant(self, node: ast.stmt) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [
            name
            for target in targets
            for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        self.refuse_bound_imports(node)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is None or not all(isinstance(name, ast.Name) for name in names):
            self.refuse(
                node,
                _(
                    "`{code}` is run by Python as the file is imported, and a kernel needs what it"
                    " makes. The check takes kernels and constants out of a file and runs nothing"
                    " else: write the value as `NAME = tl.constexpr(number)`."
                ).format(code=_quote_first_words(node)),
            )
        assert value is not None
        self.check_constants([value, getattr(node, "annotation", None)], node)

    def refuse_bound_imports(self, node: ast.AST) -> None:
        """Refuse a name that is bound in ``node`` and is an import of the file, too."""
        for name in self.imports.keys() & set(list_bound(node)):
            self.refuse(
                node,
                _("`{name}` is an import of the file; give your own value another name.").format(
                    name=name
                ),
            )

    def check_evaluated(self, function: ast.FunctionDef) -> None:
        """Check the defaults and annotations of a function, which Python evaluates as it defines
        it."""
        arguments = function.args
        annotations = [
            argument.annotation for argument in ast.walk(arguments) if isinstance(argument, ast.arg)
        ]
        self.check_constants(
            [*arguments.defaults, *arguments.kw_defaults, *annotations, function.returns], function
        )

    def check_constants(self, values: Sequence[ast.expr | None], node: ast.AST) -> None:
        """Refuse expressions that do more than calculate, or whose value can change: Python
        evaluates them when it imports the file."""
        for value in values:
            for part in ast.walk(value or ast.Constant(None)):
                self.check_part_of_constant(part, node)
                self._refuse_changeable(part)

    def _refuse_changeable(self, part: ast.AST) -> None:
        """Refuse a list, an iterator, and what makes one. The interpreter would keep in it what one
        program did, and the next program would find it; on a GPU there is no such state."""
        made: ast.AST = part
        if isinstance(part, ast.Name) and part.id in _MAKE_CHANGEABLE:
            parent = self.parents[part]
            if isinstance(parent, ast.Call) and parent.func is part:
                made = parent
        elif isinstance(part, ast.Name | ast.Attribute):
            import triton.language as tl

            if self.resolve(part) is not tl.tuple:
                return
        elif not isinstance(part, ast.List):
            return
        if not self._is_consumed(made):
            self.refuse(
                made,
                _(
                    "`{code}` can change, and on a GPU it does not: the compiler reads it once, for"
                    " all programs. Write numbers or a plain tuple of numbers."
                ).format(code=ast.unparse(made)),
            )

    def _is_consumed(self, node: ast.AST) -> bool:
        """Return True for the only argument of a builtin that keeps nothing of it."""
        call = self.parents[node]
        return (
            isinstance(call, ast.Call)
            and call.args == [node]
            and not call.keywords
            and isinstance(call.func, ast.Name)
            and (
                call.func.id in _CONSUME
                or (call.func.id in _MAKE_CHANGEABLE and self._is_consumed(call))
            )
        )

    def check_part_of_constant(self, part: ast.AST, node: ast.AST) -> None:
        """Refuse a part that a constant cannot have: it is evaluated in the process that observes
        launches."""
        words = _(
            "a constant for a kernel must be a plain number, such as `tl.constexpr(1e-5)`, or"
            " arithmetic with numbers."
        )
        allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.BoolOp,
            ast.Tuple, ast.List, ast.Call, ast.Name,
                   ast.Attribute, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
                   ast.expr_context, ast.Subscript)  # fmt: skip
        if not isinstance(part, allowed):
            self.refuse(node, words)
        if isinstance(part, ast.Name) and part.id not in self.before - self.run_by_python:
            self.check_name_of_constant(part)
        if isinstance(part, ast.Attribute):
            self.check_attribute_of_constant(part)

    def check_attribute_of_constant(self, node: ast.Attribute) -> None:
        root = find_root(node)
        path = self.imports.get(root or "", "")
        if path.partition(".")[0] in _CALCULATING:
            dotted = ast.unparse(node).replace(root or "", path, 1)
            if not _calculates(dotted):
                self.refuse(
                    node,
                    _(
                        "`{code}` is no number, and no function of numbers, of Python's `math`."
                    ).format(code=ast.unparse(node)),
                )
            return
        value = self.resolve(node)
        if value is None and node.attr not in _ATTRIBUTES_OF_CONSTANTS:
            self.refuse(
                node,
                _("`.{name}` is not something that a constant of a kernel has.").format(
                    name=node.attr
                ),
            )
        if isinstance(value, ModuleType) and not isinstance(self.parents[node], ast.Attribute):
            self.refuse(
                node, _("`{name}` is a module; use what is in it.").format(name=ast.unparse(node))
            )

    def check_name_of_constant(self, node: ast.Name) -> None:
        path = self.imports.get(node.id, "")
        if path:
            is_module = path in _CALCULATING or isinstance(self.resolve(node), ModuleType)
            if is_module and not isinstance(self.parents[node], ast.Attribute):
                self.refuse(
                    node, _("`{name}` is a module; use what is in it.").format(name=node.id)
                )
            return
        if node.id in self.run_by_python:
            self.refuse(
                node,
                _(
                    "`{name}` is a Python function of your file, and the check runs none to make a"
                    " constant. Write the number itself."
                ).format(name=node.id),
            )
        if node.id not in _BUILTINS_OF_CONSTANTS:
            self.refuse_undefined(node)

    def refuse_undefined(self, node: ast.Name) -> None:
        if hasattr(builtins, node.id):
            self.refuse(
                node,
                _("`{name}` is Python, not Triton; a kernel cannot use it.").format(name=node.id),
            )
        self.refuse(
            node,
            _(
                "`{name}` is used, and nothing in the kernel defines it. Is a part still missing,"
                " or the name mistyped?"
            ).format(name=node.id),
            "undefined_name",
        )


def _calculates(path: str) -> bool:
    """Return True for a function or a number of ``math``, and for a number of NumPy's."""
    module, _dot, name = path.rpartition(".")
    if module == "math":
        return hasattr(math, name) and not name.startswith("_")
    if module == "numpy":
        return isinstance(getattr(importlib.import_module("numpy"), name, None), float)
    return False


class _KernelCheck:
    """A jitted function: it holds the names and statements that Triton's compiler knows."""

    def __init__(self, file: _FileCheck, kernel: Any):
        self.file, self.kernel, self.refuse = file, kernel, file.refuse
        from triton.compiler.code_generator import CodeGenerator

        self.generator = CodeGenerator
        self.attributes = _list_attributes_of_kernels()
        self.local = _list_local(kernel)
        self.plain_values = {
            target.id
            for node in file.tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant | ast.UnaryOp | ast.BinOp)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def run(self) -> None:
        self._check_decorators()
        if self.kernel not in self.file.tree.body:
            self.refuse(
                self.kernel,
                _(
                    "`{name}` stands inside something else. A kernel begins at the left margin of"
                    " the file."
                ).format(name=self.kernel.name),
            )
        self._check_text()
        self._check_settings()
        parts = (*self.kernel.body, self.kernel.args, self.kernel.returns)
        for node in (node for part in parts if part for node in ast.walk(part)):
            self._check_node(node)

    def _check_decorators(self) -> None:
        kernel = self.kernel
        others = [d for d in kernel.decorator_list if not needed.is_jit(d, self.file.imports)]
        if others or isinstance(kernel, ast.AsyncFunctionDef):
            decorators = list_words(f"`@{ast.unparse(d)}`" for d in kernel.decorator_list)
            self.refuse(
                kernel,
                _(
                    "`{name}` is decorated with {decorators}. The course launches it with its own"
                    " settings: keep `@triton.jit`, and remove the others."
                ).format(name=kernel.name, decorators=decorators),
            )

    def _check_settings(self) -> None:
        """Check the arguments of ``@triton.jit(...)``, which Python evaluates."""
        calls = [
            decorator for decorator in self.kernel.decorator_list if isinstance(decorator, ast.Call)
        ]
        for value in (
            value for call in calls for value in (*call.args, *(k.value for k in call.keywords))
        ):
            if not all(
                isinstance(p, ast.Constant | ast.List | ast.Tuple | ast.expr_context)
                for p in ast.walk(value)
            ):
                self.refuse(
                    value,
                    _("`{code}` is no plain setting of `@triton.jit`.").format(
                        code=ast.unparse(value)
                    ),
                )

    def _check_text(self) -> None:
        """Check that the lines which Triton finds by ``inspect``, and interprets, are the kernel
        that is checked here."""
        first_line = min(decorator.lineno for decorator in self.kernel.decorator_list)
        with contextlib.suppress(SyntaxError, tokenize.TokenError):
            body = ast.parse("".join(inspect.getblock(self.file.lines[first_line - 1 :]))).body
            if [ast.dump(node) for node in body] == [ast.dump(self.kernel)]:
                return
        self.refuse(
            self.kernel,
            _(
                "Triton does not find all lines of `{name}`. Remove lines that hold nothing but a"
                " backslash, and indent all others."
            ).format(name=self.kernel.name),
        )

    def _check_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            self.refuse(
                node,
                _(
                    "`{name}` is defined inside a kernel. Move it out and decorate it with"
                    " `@triton.jit`."
                ).format(name=node.name),
            )
        if not isinstance(node, _ALSO_RUN) and not hasattr(
            self.generator, f"visit_{type(node).__name__}"
        ):
            self.refuse(
                node,
                _(
                    "`{code}` is not possible inside a kernel: Triton's compiler knows no such"
                    " thing."
                ).format(code=_quote_first_words(node)),
            )
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            self.refuse(
                node,
                _(
                    "this line assigns to several names at once; Triton's compiler takes one `=`"
                    " per statement."
                ),
            )
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(
            node.ctx, ast.Store | ast.Del
        ):
            self.refuse(
                node,
                _(
                    "`{code}` is assigned to; a kernel can only assign to names. Store to memory"
                    " with `tl.store`."
                ).format(code=ast.unparse(node)),
            )
        if isinstance(node, ast.Name):
            self._check_name(node)
        elif isinstance(node, ast.Attribute):
            self._check_attribute(node)

    def _check_name(self, node: ast.Name) -> None:
        name, imports = node.id, self.file.imports
        if name.startswith("__"):
            self.refuse(node, _("`{name}` is not possible inside a kernel.").format(name=name))
        if not isinstance(node.ctx, ast.Load) or name in self.local:
            if name in imports:
                self.refuse(
                    node,
                    _(
                        "`{name}` is an import of the file; give your own value another name."
                    ).format(name=name),
                )
        elif name in imports:
            self._check_imported(node)
        elif name in self.plain_values and not self._is_default(node):
            self.refuse(
                node,
                _(
                    "`{name}` is a plain Python global, which the compiler refuses. Write `{name} ="
                    " tl.constexpr(...)` or pass it as an argument."
                ).format(name=name),
            )
        elif name in self.file.functions:
            self.refuse(
                node,
                _(
                    "`{name}` is a Python function of your file, which a kernel cannot call. Put"
                    " `@triton.jit` on the line above it."
                ).format(name=name),
                "undefined_name",
            )
        elif name not in self.file.bound and name not in _BUILTINS_OF_KERNELS:
            self.file.refuse_undefined(node)

    def _check_imported(self, node: ast.Name) -> None:
        path = self.file.imports[node.id]
        if path.partition(".")[0] != "triton":
            self.refuse(
                node,
                _(
                    "`{name}` is an import of Python's; inside a kernel there are `tl` and `triton`"
                    " only."
                ).format(name=node.id),
            )
        if not isinstance(self.file.parents[node], ast.Attribute) and isinstance(
            self.file.find(node, path), ModuleType
        ):
            self.refuse(node, _("`{name}` is a module; use what is in it.").format(name=node.id))

    def _is_default(self, node: ast.AST) -> bool:
        while node is not self.kernel:
            if isinstance(node, ast.arguments):
                return True
            node = self.file.parents[node]
        return False

    def _check_attribute(self, node: ast.Attribute) -> None:
        root = find_root(node)
        if root is not None and root not in self.local:
            if not self.file.imports.get(root, "triton").startswith("triton"):
                return  # of `np.linalg` the name `np` is refused separately
            if root not in self.file.imports.keys() | self.file.bound | _BUILTINS_OF_KERNELS:
                return  # the name is refused separately
        if node.attr in _DECORATORS and isinstance(self.file.resolve(node.value), ModuleType):
            self.refuse(
                node,
                _("`{code}` stands above a function, and not inside a kernel.").format(
                    code=ast.unparse(node)
                ),
            )
        if self.file.resolve(node) is None and node.attr not in self.attributes:
            self.refuse(
                node,
                _(
                    "`.{name}` is not something that a value in a kernel has. Is it mistyped?"
                ).format(name=node.attr),
            )


class _ConstexprCheck:
    """A function that Triton calls with constants while it compiles a kernel: it calculates with
    them and does nothing else."""

    def __init__(self, file: _FileCheck, function: ast.FunctionDef):
        self.file, self.function = file, function
        self.known = _list_local(function) | (file.bound - file.functions)

    def run(self) -> None:
        if len(self.function.decorator_list) != 1:
            self.file.refuse(
                self.function,
                _(
                    "`{name}` has decorators beside `@triton.constexpr_function`; remove them."
                ).format(name=self.function.name),
            )
        self.file.refuse_bound_imports(self.function)
        for node in (part for statement in self.function.body for part in ast.walk(statement)):
            if not isinstance(node, _OF_CONSTEXPR_FUNCTIONS):
                self.file.refuse(
                    node,
                    _(
                        "`{code}` is not possible here: such a function calculates with constants."
                    ).format(code=_quote_first_words(node)),
                )
            if isinstance(node, ast.Attribute | ast.Name):
                self._check_not_handed_on(node)
            if isinstance(node, ast.Attribute):
                if not isinstance(node.ctx, ast.Load):
                    self.file.refuse(
                        node,
                        _("`{code}` is assigned to; assign to names only.").format(
                            code=ast.unparse(node)
                        ),
                    )
                self.file.check_attribute_of_constant(node)
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                self._check_changed(node)
            elif isinstance(node, ast.Name) and node.id not in self.known:
                self.file.check_name_of_constant(node)

    def _check_not_handed_on(self, node: ast.Attribute | ast.Name) -> None:
        """Refuse a function of the language that is not called: the interpreter has others, and
        their text would say where the kernel runs."""
        import triton.language as tl

        call = self.file.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            return
        value = self.file.resolve(node)
        if callable(value) and not isinstance(value, type | tl.constexpr):
            self.file.refuse(
                node,
                _(
                    "`{code}` is not possible here: such a function calculates with constants."
                ).format(code=ast.unparse(node)),
            )

    def _check_changed(self, node: ast.Subscript) -> None:
        """Refuse a store to an element, except of a list that the function itself has made."""
        name = node.value.id if isinstance(node.value, ast.Name) else None
        bindings = [
            part
            for part in ast.walk(self.function)
            if (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
            or (isinstance(part, ast.arg) and part.arg == name)
        ]
        makers = [self.file.parents[binding] for binding in bindings]
        if makers and all(isinstance(m, ast.Assign) and _makes_list(m.value) for m in makers):
            return
        self.file.refuse(
            node,
            _(
                "`{code}` is assigned to. A GPU's compiler calls this function while it compiles a"
                " kernel once, for all programs, so nothing can be kept from one program to the"
                " next. Assign to names only."
            ).format(code=ast.unparse(node)),
        )


def _makes_list(value: ast.expr) -> bool:
    """Return True for an expression that makes a new list."""
    if isinstance(value, ast.BinOp):
        return _makes_list(value.left) or _makes_list(value.right)
    return isinstance(value, ast.List | ast.ListComp)


def _list_attributes_of_kernels() -> frozenset[str]:
    """Return the attributes that Triton gives to the values in a kernel."""
    import triton.language as tl

    classes = [
        kind
        for name in dir(tl.core)
        if isinstance(kind := getattr(tl.core, name), type)
        and issubclass(kind, tl.core.base_value | tl.core.base_type | tl.core.dtype)
    ]
    public = {
        name
        for kind in classes
        for name in dir(kind)
        if not name.startswith("_") and not isinstance(getattr(kind, name), list | dict | set)
    }
    # members of Triton's enumerations, such as tl.PropagateNan.ALL
    public |= {
        member for name in dir(tl) for member in getattr(getattr(tl, name), "__members__", ())
    }
    return frozenset(public | _ATTRIBUTES_OF_INSTANCES) - {"handle", "handles", "with_traceback"}


def _asks_for_constexpr(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Name | ast.Attribute)
        and ast.unparse(decorator).endswith("constexpr_function")
        for decorator in node.decorator_list
    )


def _list_local(function: ast.FunctionDef) -> set[str]:
    """Return the names that are bound in every scope of ``function`` that uses them. A
    comprehension has a scope of its own."""
    tables = symtable.symtable(ast.unparse(function), "<function>", "exec").get_children()
    looked_up = set()
    for table in tables:
        looked_up |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        tables += table.get_children()
    return set(list_bound(function)) - looked_up


def _list_bound_by(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of the file binds, except by imports."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        yield from needed.list_bound_in_file(node)


def find_root(node: ast.expr) -> str | None:
    """Return the first name of a dotted expression, as ``np`` of ``np.linalg.norm``; None if it
    does not begin with a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _quote_first_words(node: ast.AST) -> str:
    words = (
        ast.unparse(node).splitlines()[0]
        if isinstance(node, ast.stmt | ast.expr)
        else type(node).__name__
    )
    return words if len(words) < 60 else words[:57] + "..."


def list_bound(tree: ast.AST) -> Iterator[str]:
    """Yield every name that is bound anywhere in ``tree``, except by imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node is not tree
        ):
            yield node.name
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            yield node.name or "_"
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or "_"
