"""Find unusual lines in a submission. They are no fault, but an instructor may want to look at
them.

The sandbox confines a submission, and its bytes are judged, whatever it does. But a function could
come to right bytes by a computation that the exercise forbids, in a way that neither its text nor
PyTorch's dispatcher shows. Such a computation needs one of the lines that are listed here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_lib.grading.submission import needed
from course_lib.grading.submission.kernel_check import find_root
from course_lib.grading.verdict import Oddity

_COMPUTE = frozenset(  # any other import may give access to everything: os, operator, pydoc
    """__future__ abc collections contextlib copy course_lib dataclasses decimal enum fractions functools itertools logging math
    ml_dtypes numbers numpy random statistics time torch triton typing typing_extensions warnings""".split()  # noqa: E501
)
_REACHES_THE_PROCESS = frozenset(
    "builtins ctypes gc importlib inspect multiprocessing os subprocess sys threading types".split()
)
_FRAMES = frozenset(
    """f_back f_builtins f_code f_globals f_locals gi_code gi_frame cr_frame ag_frame tb_frame tb_next __builtins__ __closure__ __code__
    __globals__ __mro__ __subclasses__ _getframe __dict__ __getattribute__ __getattr__ mro attrgetter methodcaller""".split()  # noqa: E501
)
_DISPATCHER = frozenset(
    """_C _dispatch _disable_current_modes _pop_mode_temporarily _python_dispatch DisableTorchFunction DisableTorchFunctionSubclass
    TorchDispatchMode TorchFunctionMode _len_torch_dispatch_stack from_numpy numpy apply_ map_ map2_ data_ptr untyped_storage as_ctypes ctypeslib no_dispatch CompilationUnit""".split()  # noqa: E501
)
_RUNS_TEXT = frozenset("eval exec compile __import__ globals vars".split())


def find_oddities(cut: str) -> tuple[Oddity, ...]:
    """Return the odd lines of the functions that were cut out of a file, each once, in the order of
    the file."""
    found: dict[int, Oddity] = {}
    for line, words in sorted(_list_odd(ast.parse(cut))):
        found.setdefault(line, Oddity(line, words))
    return tuple(found.values())


def _list_odd(tree: ast.Module) -> Iterator[tuple[int, str]]:
    imports = list(needed.list_imports(tree))
    names = {name for name, _ in imports}
    has_torch = any(path.partition(".")[0] == "torch" for _, path in imports)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                for _, path in needed.list_imports(node):
                    if words := _describe_import(path):
                        yield node.lineno, words
            case ast.Attribute(attr=name) if name in _FRAMES:
                yield node.lineno, f"reads `.{name}`, the insides of a running program"
            case ast.Attribute(attr=name) if name in _DISPATCHER and has_torch:
                yield node.lineno, f"uses `.{name}`, which goes past PyTorch's dispatcher"
            case ast.Attribute(attr=name) if _is_inside(name) and find_root(node) in names:
                yield node.lineno, f"uses `{ast.unparse(node)}`, the insides of a library"
            case ast.Name(id="getattr") if id(node) not in called:
                yield (
                    node.lineno,
                    "hands on `getattr`, which looks up names that the text does not show",
                )
            case ast.Name(id=name, ctx=ast.Load()) if name in _RUNS_TEXT:
                yield (
                    node.lineno,
                    f"uses `{name}`, which runs or finds code that the text does not show",
                )
            case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]) if not isinstance(
                name, ast.Constant
            ):
                yield node.lineno, "looks up a name that the text does not show, by `getattr`"


def _describe_import(path: str) -> str:
    root, *rest = path.split(".")
    if root not in _COMPUTE:
        return f"imports `{root}`, which computes nothing"
    if not _DISPATCHER.isdisjoint(rest):
        return f"imports `{path}`, which goes past PyTorch's dispatcher"
    return f"imports `{path}`, the insides of a library" if any(map(_is_inside, rest)) else ""


def _is_inside(name: str) -> bool:
    """Return True for a private name of a library, and for a module of Python's that the library
    imports."""
    return name in _REACHES_THE_PROCESS or (name.startswith("_") and not name.endswith("__"))


def find_code_of_its_own(tree: ast.Module, cut: str) -> int:
    """Return the first line outside of ``cut`` with code that an import runs: a call, a loop, an
    assertion; 0 if there is none."""
    kept = {node.lineno for node in ast.parse(cut).body}
    return next(
        (node.lineno for node in tree.body if node.lineno not in kept and _does_something(node)), 0
    )


def _does_something(node: ast.stmt) -> bool:
    if isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    ):
        return False
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return False  # this code runs only if the file is run as a program
    return not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant)
