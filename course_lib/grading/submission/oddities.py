"""Find unusual lines in a submission. They are no fault, but an instructor may want to look at
them.

The sandbox confines a submission, and its bytes are judged, whatever it does. But a function could
come to right bytes by a computation that the exercise forbids, in a way that neither its text nor
PyTorch's dispatcher shows. Such a computation needs one of the lines that are listed here.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

from course_lib.grading.submission import needed
from course_lib.grading.submission.kernel_check import find_root
from course_lib.grading.verdict import Oddity

_COMPUTE = frozenset(  # any other import may give access to everything: os, operator, pydoc
    """__future__ abc collections contextlib copy course_lib dataclasses decimal enum fractions functools itertools logging math
    ml_dtypes numbers numpy random statistics time torch triton typing typing_extensions warnings""".split()  # noqa: E501
)
# Modules of Python's that a library imports, as `torch.os`. The names left out are functions of
# NumPy's and PyTorch's, too.
_MODULES_OF_PYTHON = (
    frozenset(sys.stdlib_module_names)
    - _COMPUTE
    - frozenset("array chunk copy multiprocessing select signal trace typing".split())
)
_FRAMES = frozenset(
    """f_back f_builtins f_code f_globals f_locals gi_code gi_frame cr_frame ag_frame tb_frame tb_next __builtins__ __closure__ __code__
    __annotations__ __annotate__ __globals__ __mro__ __subclasses__ _getframe __dict__ __getattribute__ __getattr__ mro attrgetter methodcaller""".split()  # noqa: E501
)
_DISPATCHER = frozenset(
    """_C _dispatch _disable_current_modes _pop_mode_temporarily _python_dispatch DisableTorchFunction DisableTorchFunctionSubclass
    TorchDispatchMode TorchFunctionMode _len_torch_dispatch_stack from_numpy numpy apply_ map_ map2_ data_ptr untyped_storage as_ctypes ctypeslib no_dispatch CompilationUnit""".split()  # noqa: E501
)
# Each of these kinds is a way to a function without its name in the text: a name is resolved while
# the function runs, an object is made out of bytes, another thread runs without the dispatcher.
_RESOLVES_NAMES = frozenset(
    """BaseConfigurator DictConfigurator ForwardRef GraphModule config evaluate_forward_ref f2py
    get_annotations get_field get_type_hints import_module make_dataclass measure parse_type_line
    resolve resolve_name rundocs runstring update_wrapper""".split()
)
_RESOLVING_MODULES = frozenset("fx hub library overrides package".split())
_MAKES_OBJECTS = frozenset(
    """Unpickler __reduce__ __reduce_ex__ __setstate__ __getstate__ find_class loads read_array
    set_state""".split()
)
_READS_A_FILE = frozenset("format load memmap fromfile npyio serialization".split())
_STARTS_A_THREAD = frozenset(
    """DataLoader DataParallel QueueListener Thread ThreadPool ThreadPoolExecutor Timer
    distributed handlers multiprocessing parallel_apply run_threaded start_new_thread""".split()
)
_THREADS_OF_TORCH = frozenset("fork futures".split())
_RUNS_TEXT = frozenset(
    "eval exec compile __import__ __loader__ __spec__ breakpoint globals vars".split()
)
_OWN_OBJECTS = frozenset({"self", "cls"})
_BUILTINS = frozenset(dir(builtins))
_OF_NAMEDTUPLES = frozenset("_asdict _fields _field_defaults _make _replace".split())


def find_oddities(cut: list[ast.stmt]) -> tuple[Oddity, ...]:
    """Return the odd lines of the functions that were cut out of a file, each once, in the order of
    the file."""
    oddities: dict[int, Oddity] = {}
    for line, words in sorted(_list_odd(ast.Module(cut, []))):
        oddities.setdefault(line, Oddity(line, words))
    return tuple(oddities.values())


def _describe_attribute(node: ast.Attribute, libraries: set[str], has_torch: bool) -> str:
    """Return what is odd about a use of an attribute, or "". ``libraries`` are the names that
    imports bind."""
    name = node.attr
    if name in _FRAMES:
        return f"reads `.{name}`, the insides of a running program"
    if name in _DISPATCHER and has_torch:
        return f"uses `.{name}`, which goes past PyTorch's dispatcher"
    if words := _describe_way(name, of_library=find_root(node) in libraries):
        return f"uses `{ast.unparse(node)}`, {words}"
    if _is_private(name) and name not in _OF_NAMEDTUPLES and find_root(node) not in _OWN_OBJECTS:
        return f"uses `.{name}`, the insides of a library"
    return ""


def _list_libraries(tree: ast.Module) -> set[str]:
    """Return the names that imports bind, and the names that stand for what lies there."""
    names = {name for name, _ in needed.list_imports(tree)}
    named = list(_list_other_names(tree))
    before = -1
    while len(names) > before:
        before = len(names)
        names |= {name for name, value in named if find_root(value) in names}
    return names


def _list_other_names(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that is assigned a dotted name, and the dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            targets = [node.target]
        else:
            continue
        if node.value is not None and find_root(node.value) is not None:
            yield from (
                (target.id, node.value) for target in targets if isinstance(target, ast.Name)
            )


def _list_modules(tree: ast.Module) -> dict[str, str]:
    """Return the names that stand for modules, each with the module's own name."""
    modules = {
        alias.asname or alias.name.partition(".")[0]: (
            alias.name if alias.asname else alias.name.partition(".")[0]
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for name, value in _list_other_names(tree):
        if isinstance(value, ast.Name) and value.id in modules:
            modules.setdefault(name, modules[value.id])
    return modules


def _is_module_of_python(module: str | None, name: str) -> bool:
    """Return True if ``name`` in this module of Python's is another module that is not for
    computing."""
    if module not in _COMPUTE & sys.stdlib_module_names:
        return False
    value = getattr(importlib.import_module(module), name, None)
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _COMPUTE


def _list_odd(tree: ast.Module) -> Iterator[tuple[int, str]]:
    imports = list(needed.list_imports(tree))
    names, modules = _list_libraries(tree), _list_modules(tree)
    has_torch = any(path.partition(".")[0] == "torch" for _, path in imports)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                described = map(_describe_import, _list_paths(node))
                yield from ((node.lineno, words) for words in filter(None, described))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if _is_module_of_python(
                modules.get(owner), name
            ):
                yield node.lineno, f"uses `{ast.unparse(node)}`, the insides of a library"
            case ast.Attribute():
                if words := _describe_attribute(node, names, has_torch):
                    yield node.lineno, words
            case ast.MatchClass(cls=kind, patterns=[_, *_]) if ast.unparse(kind) not in _BUILTINS:
                yield node.lineno, "matches by position, which looks up names"
            case ast.FunctionDef(name=name) if name in _MAKES_OBJECTS:
                yield node.lineno, f"defines `{name}`, {_OUT_OF_BYTES}"
            case ast.keyword(arg="allow_pickle", value=value):
                yield value.lineno, f"uses `allow_pickle`, {_OUT_OF_BYTES}"
            case (
                ast.arg(annotation=ast.expr() as note)
                | ast.AnnAssign(annotation=note)
                | ast.FunctionDef(returns=ast.expr() as note)
            ) if _computes(note):
                yield note.lineno, "has an annotation that computes"
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


def _list_paths(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the dotted name of each module, or of what is in one, that the statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module or ''}.{alias.name}" for alias in node.names]


def _describe_import(path: str) -> str:
    root, *rest = path.split(".")
    if root not in _COMPUTE:
        return f"imports `{root}`, which computes nothing"
    if not _DISPATCHER.isdisjoint(rest):
        return f"imports `{path}`, which goes past PyTorch's dispatcher"
    words = next((words for name in rest if (words := _describe_way(name, of_library=True))), "")
    return words and f"imports `{path}`, {words}"


_OUT_OF_BYTES = "which makes objects out of bytes"


def _describe_way(name: str, of_library: bool) -> str:
    """Describe the way that an attribute opens to what the text does not show; return "" if it
    opens none.

    Args:
        of_library: True for an attribute of a module that is imported, or of what is in one.
    """
    if name in _RESOLVES_NAMES or (of_library and name in _RESOLVING_MODULES):
        return "which finds code by its name"
    if name in _MAKES_OBJECTS or (of_library and name in _READS_A_FILE):
        return _OUT_OF_BYTES
    if name in _STARTS_A_THREAD or (of_library and name in _THREADS_OF_TORCH):
        return "which may run code in another thread"
    if of_library and (name in _MODULES_OF_PYTHON or _is_private(name)):
        return "the insides of a library"
    return ""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _computes(annotation: ast.expr) -> bool:
    """Return True for an annotation that calls something. Python evaluates an annotation, or a
    library evaluates its text."""
    parts = list(ast.walk(annotation))
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                parts += ast.walk(ast.parse(part.value, mode="eval"))
    return any(isinstance(part, ast.Call | ast.Await | ast.Lambda) for part in parts)


def find_code_of_its_own(tree: ast.Module, cut: list[ast.stmt]) -> int:
    """Return the first line outside of ``cut`` with code that an import runs: a call, a loop, an
    assertion; 0 if there is none."""
    lines_of_cut = {node.lineno for node in cut}
    return next(
        (
            node.lineno
            for node in tree.body
            if node.lineno not in lines_of_cut and _does_something(node)
        ),
        0,
    )


def _does_something(node: ast.stmt) -> bool:
    if isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    ):
        return False
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return False  # this code runs only if the file is run as a program
    return not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant)
