"""What a submission's names stand for, asked of the installed libraries, and which of them an exercise is open to.

Open is what Triton, PyTorch, NumPy and some modules of Python's own offer for computing. Closed, each with a reason, is what
reaches outside of the exercise: files, other code, the memory of others, the process itself; and the shortcuts that an exercise
forbids, whatever they are called. :func:`check` looks at a file before it runs; what only shows while it runs (a module in a
variable) is looked up by :class:`Names`, too.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from course_lib.grading.submission import needed
from course_lib.grading.submission.extract_kernels import make_refusal
from course_lib.grading.submission.places import Located

# what is told where a check runs in the tier "limits only": with each refusal, and by whoever shows an exercise there
WITHOUT_SANDBOX = (
    "This machine cannot shut a check in (isolation: limits only; `course doctor` says what is missing), so a file may hold only what "
    "is on a list here; on a machine that can, more is open."
)
_OUTSIDE = "an exercise computes from its arguments alone"
_PRIVATE = "an exercise may use public names only"
_FILES = "it reads or writes files, and an exercise computes from its arguments alone"
_CODE = "it runs code that is not in your file"
_MEMORY = "it can read and write memory outside of the tensor"
_NOT_COUNTED = "PyTorch does not notice what is done with its memory"
_WATCH = "it goes past Triton, where nothing can be checked"


def _by_reason(*groups: tuple[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in groups for name in names.split()}


_OPEN = frozenset(
    """__future__ abc cmath collections collections.abc contextlib dataclasses enum fractions functools itertools math numbers
    operator time typing warnings
    numpy numpy.dtypes numpy.emath numpy.exceptions numpy.fft numpy.lib numpy.lib.stride_tricks numpy.linalg numpy.random numpy.typing
    torch torch.amp torch.autograd torch.autograd.function torch.autograd.functional torch.cuda.amp torch.fft torch.func torch.linalg
    torch.nn torch.nn.functional torch.nn.init torch.nn.modules torch.nn.parameter torch.special torch.testing torch.types
    triton triton.language triton.language.core triton.language.extra triton.language.extra.cuda triton.language.extra.cuda.libdevice
    triton.language.extra.libdevice triton.language.math triton.language.random triton.language.standard
    course_lib.norms.launchers""".split()
)
# what is closed in a module that is open, each with the reason
_CLOSED: dict[str, dict[str, str]] = {
    "contextlib": _by_reason((_OUTSIDE, "chdir redirect_stdout redirect_stderr")),
    "dataclasses": _by_reason((_CODE, "make_dataclass fields")),
    "functools": _by_reason((_CODE, "update_wrapper singledispatch singledispatchmethod cached_property")),
    "operator": _by_reason((_CODE, "attrgetter methodcaller")),
    "typing": _by_reason((_CODE, "get_type_hints ForwardRef evaluate_forward_ref get_args get_origin")),
    "numpy": _by_reason(
        (_FILES, "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile fromregex memmap"),
        (_CODE, "bmat"),
        (_MEMORY, "recarray chararray matrix asmatrix nditer nested_iters"),
    ),
    "numpy.lib.stride_tricks": _by_reason((_MEMORY, "as_strided")),
    "torch": _by_reason(
        (_FILES, "load save from_file"),
        ("it starts a compiler, and what that makes cannot be followed", "compile"),
        (_OUTSIDE, "set_default_tensor_type set_default_device"),
        (_NOT_COUNTED, "from_numpy"),
    ),
    "triton.language": _by_reason((_WATCH, "inline_asm_elementwise")),
    "triton.language.core": _by_reason((_WATCH, "inline_asm_elementwise extern_elementwise dispatch extern")),
}
_LIBRARIES = {  # of each kind of exercise: what it is written in
    "torch": ("torch",), "autograd": ("torch", "course_lib"), "tests": ("torch",), "numpy": ("numpy",), "kernel": ("triton", "torch", "numpy"),
}  # fmt: skip
# modules of which only these names are open
_GIVEN = {
    "course_lib.norms.launchers": ("launch_forward", "launch_backward"),
    "enum": ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "auto", "unique"),
    "fractions": ("Fraction",),
}
_NUMBERS = frozenset("prod sqrt pi e inf nan ceil floor log2 finfo float16 float32 float64 newaxis".split())
_NUMBERS_OF_NUMPY = {
    "torch": _NUMBERS,
    "autograd": _NUMBERS,
    "tests": _NUMBERS,
}  # what needs no array, which would share a tensor's memory
_TRITON = ("jit", "cdiv", "next_power_of_2", "constexpr_function", "language")
_TORCH_HOMES = (
    "torch",
    "torch.func",
    "torch.functional",
    "torch.random",
    "torch._tensor_str",
    "torch.autograd.grad_mode",
)
_TORCH_CLASSES = frozenset(
    """Tensor Size Generator device dtype finfo iinfo layout memory_format autocast enable_grad inference_mode no_grad set_grad_enabled
    OutOfMemoryError BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor BFloat16Tensor IntTensor LongTensor
    ShortTensor SymBool SymFloat SymInt""".split()
)
_SPREAD = frozenset("var nanvar var_mean std nanstd std_mean cov pvariance".split())
_NORMS = frozenset(
    """layer_norm native_layer_norm LayerNorm rms_norm RMSNorm group_norm native_group_norm GroupNorm instance_norm InstanceNorm1d
    InstanceNorm2d InstanceNorm3d batch_norm native_batch_norm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm""".split()
)
_GRADIENTS = frozenset(
    """grad backward grad_fn vjp jvp vhp hvp hessian jacobian jacrev jacfwd grad_and_value linearize functional_call
    native_layer_norm_backward""".split()
)
# a forbidden word stands for a computation; these do it, too
_SAME = {
    "var": _SPREAD, "std": _SPREAD, "layer_norm": _NORMS, "rms_norm": _NORMS, "grad": _GRADIENTS, "backward": _GRADIENTS,
}  # fmt: skip
# attributes of values that lead to frames, code, modules, files or raw memory
_CLOSED_ATTRIBUTES = _by_reason(
    (_OUTSIDE, """gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code tb_frame tb_next f_back f_globals f_locals
    f_builtins f_code with_traceback mro registry"""),
    (_FILES, "tofile dump dumps from_file"),
    (_NOT_COUNTED, "numpy apply_ map_ map2_"),
    (_MEMORY, "ctypes untyped_storage storage typed_storage set_ setflags from_buffer share_memory_ as_strided_ handle"),
)  # fmt: skip
_OPEN_DUNDERS = frozenset(
    "__init__ __call__ __enter__ __exit__ __name__ __qualname__ __doc__ __version__ __len__ __iter__ __next__ __getitem__ _replace _asdict _make _fields".split()
)
# methods and names that a class may define
_OWN_DUNDERS = _OPEN_DUNDERS | frozenset(
    """__post_init__ __slots__ __repr__ __str__ __bool__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __contains__ __setitem__
    __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __pow__ __neg__ __pos__
    __abs__ __matmul__ __float__ __int__ __index__ __format__ __all__ __author__""".split()
)
_CLOSED_BUILTINS = frozenset(
    """open eval exec compile __import__ globals locals vars dir breakpoint input help id memoryview exit quit copyright credits
    license""".split()
)
OPEN_BUILTINS = frozenset(
    name for name in dir(builtins) if not name.startswith("_") and name not in _CLOSED_BUILTINS
) | {"__name__", "__debug__", "NotImplemented"}  # fmt: skip
_GUARDED = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_IN_KERNELS = frozenset("range min max abs float int bool len list tuple isinstance print".split())
_OF_VALUES = frozenset(  # of a kernel's: what the instances of Triton's classes have, and the classes do not show
    """shape numel type dtype value values name element_ty scalar strides block_shape primitive_bitwidth int_bitwidth
    int_signedness address_space const""".split()
)
_ALSO_RUN = (  # what the interpreter runs, and of what the compiler says in its own words why it is refused
    ast.Break, ast.Continue, ast.Starred, ast.FormattedValue, ast.Assert, ast.Slice, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.arguments, ast.arg, ast.keyword, ast.comprehension,
)  # fmt: skip


class Closed(Exception):
    """A name that this exercise is not open to: ``str()`` says why, as a sentence without a full stop."""


class Names:
    """What an exercise is open to.

    Args:
        kind: "kernel", "torch", "numpy", "autograd" or "tests".
        forbidden: the exercise's shortcuts, each with the reason.
    """

    def __init__(self, kind: str, forbidden: Mapping[str, str]):
        self.kind = kind
        self.forbidden = {same: reason for word, reason in forbidden.items() for same in (_SAME.get(word, ()))} | dict(
            forbidden
        )

    def find_module(self, path: str) -> ModuleType:
        """The module ``path``.

        Raises: Closed.
        """
        root = path.split(".")[0]
        others = {library for libraries in _LIBRARIES.values() for library in libraries} - {*_LIBRARIES[self.kind]}
        if root in others and path in _OPEN and not (path == "numpy" and self.kind in _NUMBERS_OF_NUMPY):
            raise Closed(f"`{path}` is not for this exercise, which is written with {_LIBRARIES[self.kind][0]}")
        if path not in _OPEN:
            raise Closed(self._describe_imports(path))
        return importlib.import_module(path)

    def find_member(self, module: ModuleType, name: str, *, now: bool = False) -> Any:
        """What ``name`` stands for in ``module``; ``now``: the file is running, and nothing says what will be done with it.

        Raises: Closed.
        """
        path, word = module.__name__, f"{_shorten(module.__name__)}.{name}"
        self.check_forbidden(name, word)
        if name.startswith("_") and name not in _OPEN_DUNDERS:
            raise Closed(f"`{word}` is private: {_PRIVATE}")
        if path not in _OPEN:
            raise Closed(self._describe_imports(path))
        if name in _CLOSED.get(path, {}):
            raise Closed(f"`{word}` cannot be used in an exercise: {_CLOSED[path][name]}")
        if path == "numpy" and name not in _NUMBERS_OF_NUMPY.get(self.kind, (name,)):
            raise Closed(f"`{word}` is not for this exercise, which is written with torch")
        if path in _GIVEN and name not in _GIVEN[path]:
            raise Closed(f"`{word}` is not given; `{'` and `'.join(_GIVEN[path])}` are")
        try:
            value = getattr(module, name)
        except AttributeError:
            try:  # a module that nobody has imported yet
                return self.find_module(f"{path}.{name}")
            except (Closed, ImportError):
                raise Closed(f"there is no `{word}`. Is it mistyped?") from None
        if isinstance(value, ModuleType):
            return self.find_module(value.__name__)
        if not self._is_open(path, name, value) or (now and (path, name) in _PLACED):
            raise Closed(f"`{word}` cannot be used in an exercise: it is none of the names that compute")
        return value

    def _describe_imports(self, path: str) -> str:
        libraries = " and ".join(library for library in _LIBRARIES[self.kind] if library != "course_lib")
        return (
            f"`{path}` cannot be used in an exercise, which may import only {libraries} and modules of Python's own that compute: "
            "math, itertools, functools, dataclasses, enum, typing and others"
        )

    def check_forbidden(self, name: str, word: str) -> None:
        """Raises: Closed if ``name``, of a library or one of its values, is a shortcut that the exercise forbids."""
        reason = self.forbidden.get(name)
        if reason is None and "backward" in self.forbidden and name.endswith("_backward"):
            reason = self.forbidden["backward"]
        if reason is not None:
            raise Closed(f"`{word}` is a shortcut that this exercise forbids: {reason}")

    @staticmethod
    def check_attribute(name: str, own: bool) -> None:
        """Raises: Closed if no value's attribute ``name`` may be used; ``own``: of a class in the file."""
        if name in _CLOSED_ATTRIBUTES and not own:
            raise Closed(f"`.{name}` cannot be used in an exercise: {_CLOSED_ATTRIBUTES[name]}")
        if (
            name.startswith("_")
            and name not in (_OWN_DUNDERS if own else _OPEN_DUNDERS)
            and not (own and name[:2] != "__")
        ):
            raise Closed(f"`.{name}` is private: {_PRIVATE}")

    @staticmethod
    def _is_open(path: str, name: str, value: Any) -> bool:
        root = path.split(".")[0]
        if path == "triton":
            return name in _TRITON
        if root == "triton":
            import triton.language as tl

            home = getattr(value, "__module__", "") or ""
            plain = isinstance(value, bool | int | float | str) or type(value).__module__.startswith("triton.language")
            # the interpreter puts others in their places, whose module says nothing
            listed = name in tl.__all__ or (path.startswith("triton.language.extra") and callable(value))
            return (
                plain
                or listed
                or (isinstance(home, str) and home.startswith("triton.language"))
                or hasattr(value, "fn")
            )
        if path == "torch" and isinstance(value, type):
            return name in _TORCH_CLASSES
        if path == "torch" and callable(value):
            import torch

            home = getattr(value, "__module__", None) or ""
            operations = torch._C._VariableFunctions  # pyright: ignore[reportAttributeAccessIssue]
            return hasattr(operations, name) or home in _TORCH_HOMES
        return True


# modules of which everything may be imported at once, and a harmless name of each
_STARRED = {"triton.language": "float32", "torch": "float32", "numpy": "float32"}
# what may stand only where it is seen what is done with it
_PLACED = {("functools", "wraps"), ("numpy", "ndarray")}
# what makes a type of other types, and hands none of them out again: `typing.Union[A]` is A itself, and `Annotated[A, 1]()` calls A
_TYPE_MAKERS = frozenset(
    """tuple list dict set frozenset typing.Tuple typing.List typing.Dict typing.Set typing.Optional typing.Callable typing.Sequence
    typing.Iterable typing.Iterator typing.Mapping collections.abc.Callable collections.abc.Sequence collections.abc.Iterable
    collections.abc.Iterator collections.abc.Mapping""".split()
)
_MAKERS_OF_NOTES = frozenset("type typing.Annotated typing.ClassVar typing.Final typing.Type typing.Union".split())


def end(sentence: str) -> str:
    """``sentence`` with a full stop, if it has no end of its own."""
    return sentence if sentence.endswith(("?", ".")) else f"{sentence}."


def _shorten(path: str) -> str:
    return {"numpy": "np", "triton.language": "tl"}.get(path, path)


class Checked:
    """What :func:`check` found out. ``resolved``: the nodes whose value is known already; ``jitted``: the kernels and their helpers."""

    def __init__(self) -> None:
        self.resolved: set[ast.AST] = set()
        self.jitted: set[ast.AST] = set()


def check(tree: ast.Module, names: Names, file: str) -> Checked:
    """Look at what was cut out of ``file``, before it runs.

    Raises: Unreadable, with the line, at the first thing that the exercise is not open to.
    """
    _expand_stars(tree, names)
    checked = _Check(tree, names, file)
    checked.run()
    return checked.found


def _expand_stars(tree: ast.Module, names: Names) -> None:
    """Put in place of the `*` of a library's import the names that the file uses and does not bind: they are looked up one by one."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_list_bound(tree))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _STARRED and node.names[0].name == "*":
            try:
                offered = names.find_module(node.module).__all__
            except Closed:  # the check of imports says it, with the line
                continue
            # one name at least: an import of none is no Python
            found = sorted(used.intersection(offered)) or [_STARRED[node.module]]
            node.names = [ast.copy_location(ast.alias(name), node.names[0]) for name in found]


class _Check:
    def __init__(self, tree: ast.Module, names: Names, file: str):
        self.tree, self.names, self.file, self.found = tree, names, file, Checked()
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.imports = dict(needed.list_imports(tree))
        bound = list(_list_bound(tree))
        self.bound = set(bound)
        # what a name of the file's own decorates is Python, whatever the name is
        not_own = {name: "" for name in self.bound} | {
            name: path for name, path in self.imports.items() if name not in self.bound
        }
        self.found.jitted = {node for node in ast.walk(tree) if needed.is_jitted(node, not_own)}
        self.jitted_names = {getattr(node, "name", "") for node in self.found.jitted}
        doubly = {name for name, _ in needed.list_imports(tree)} & self.bound
        same = {
            name for name in self.imports if len({target for n, target in needed.list_imports(tree) if n == name}) > 1
        }
        self.shadowed = doubly | same
        self.attributes = set(_list_own_attributes(tree))
        self.array_types = {  # Array = np.ndarray, and nothing else is called Array
            node.targets[0].id
            for node in tree.body
            if isinstance(node, ast.Assign) and self._name_type(node.value) == "numpy.ndarray"
            if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and bound.count(node.targets[0].id) == 1
        } - self.imports.keys()

    def refuse(self, node: ast.AST, what: str, cause: str = "not_allowed"):
        while not isinstance(node, Located):
            node = self.parents[node]
        raise make_refusal(cause, self.file, node, what)

    def ask(self, node: ast.AST, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Closed as closed:
            self.refuse(node, end(str(closed)))

    def run(self) -> None:
        inside = {part for kernel in self.found.jitted for part in ast.walk(kernel)}
        for kernel in self.found.jitted:
            _KernelCheck(self, kernel).run()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._check_import(node)
            elif node not in inside:
                self._check_node(node)

    def _check_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.ask(node, lambda alias=alias: self.names.find_module(alias.name))
            return
        if node.level or not node.module:
            self.refuse(node, "an exercise is one file, and imports no other file of yours.")
        # modules of a package that is not open itself
        if node.module not in _OPEN and all(f"{node.module}.{alias.name}" in _OPEN for alias in node.names):
            for alias in node.names:
                self.ask(node, lambda alias=alias: self.names.find_module(f"{node.module}.{alias.name}"))
            return
        module = self.ask(node, lambda: self.names.find_module(node.module or ""))
        for alias in node.names:
            if alias.name == "*":
                self.refuse(
                    node,
                    "`*` takes in everything at once, so that nothing says where a name is from. Import the names that you use.",
                )
            if node.module != "__future__":
                self.ask(node, lambda alias=alias: self.names.find_member(module, alias.name))

    def _check_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self._check_name(node)
        elif isinstance(node, ast.Attribute):
            self._check_attribute(node)
        elif isinstance(node, ast.MatchClass) and (node.patterns or node.kwd_patterns):
            self.refuse(
                node,
                "a `case` with a class and brackets reads attributes where no check sees them. Compare the attributes with `if`.",
            )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._check_stored(node, node.name)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            self._check_stored(node, node.arg)

    def _check_stored(self, node: ast.AST, name: str) -> None:
        if name.startswith("__") and name not in _OWN_DUNDERS:
            self.refuse(node, f"`{name}` has a meaning to Python or to a library. Choose another name.")

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            return self._check_stored(node, name)
        if name in self.jitted_names and name in self.bound:
            where = "Triton runs it, and no other code that it needs can"
            return self.refuse(node, f"`{name}` is a kernel, or a function that kernels call: {where}.")
        if name in self.array_types:
            return self._check_placed(node, "numpy.ndarray")
        if name in self.bound:
            return None
        if name in self.imports:
            return self._check_placed(node, self.imports[name])
        if name == "type":
            return self._check_type(node)
        if name in OPEN_BUILTINS:
            return None
        if hasattr(builtins, name) or name.startswith("__"):
            return self.refuse(node, f"`{name}` cannot be used in an exercise: {_OUTSIDE}.")
        return self.refuse(
            node,
            f"`{name}` is used, and nothing in the file defines it. Is a part still missing, or the name mistyped?",
            "undefined_name",
        )

    def _check_type(self, node: ast.Name) -> None:
        call = self.parents[node]
        asked = isinstance(call, ast.Call) and call.func is node and len(call.args) == 1 and not call.keywords
        where = self.parents.get(call) if asked else None
        if asked and isinstance(where, ast.Compare | ast.Attribute | ast.FormattedValue):
            return
        if self._is_annotation_or_test(call if asked else node) or (
            asked
            and (self._calls(where, "print", "str", "repr") or (isinstance(where, ast.Assert) and where.msg is call))
        ):
            return
        self.refuse(
            node,
            "`type(...)` may be compared, printed, or asked for its name, as in `type(x).__name__`. An exercise can do nothing else with it.",
        )

    def _calls(self, node: ast.AST | None, *builtin: str) -> bool:
        return (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in set(builtin) - self.bound
        )

    def _is_annotation_or_test(self, node: ast.AST) -> bool:
        """True in an annotation, as the class that isinstance asks for, and inside of ``tuple[...]`` and its like."""
        while True:
            parent = self.parents[node]
            if isinstance(parent, ast.arg) or (isinstance(parent, ast.AnnAssign) and parent.annotation is node):
                return True
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return parent.returns is node
            if self._calls(parent, "isinstance", "issubclass"):
                return node in getattr(parent, "args", [])[1:]
            if isinstance(parent, ast.Subscript) and node is parent.slice:
                maker = self._name_type(parent.value)
                if maker in _TYPE_MAKERS:
                    return True
                if maker not in _MAKERS_OF_NOTES:  # an object of the file's own would be handed the type
                    return False
            elif isinstance(parent, ast.BinOp):
                if not isinstance(parent.op, ast.BitOr):
                    return False
            elif not isinstance(parent, ast.Tuple | ast.List | ast.Subscript):
                return False
            node = parent

    def _name_type(self, node: ast.expr) -> str:
        """``tuple``, ``typing.Tuple``: the type that the name or the dots stand for, "" where that is not certain."""
        root = _find_root(node)
        if root is None or root in self.bound or root in self.shadowed:
            return ""
        return ast.unparse(node).replace(root, self.imports.get(root, root), 1)

    def _check_placed(self, node: ast.expr, path: str) -> None:
        """What may stand only in certain places: see _PLACED."""
        module, _, name = path.rpartition(".")
        if (module, name) == ("functools", "wraps"):
            call = self.parents[node]
            if not (isinstance(call, ast.Call) and call.func is node and len(call.args) == 1 and not call.keywords):
                self.refuse(node, "`functools.wraps` takes the function that is wrapped, and nothing else.")
        elif (module, name) == ("numpy", "ndarray"):
            owner = self.parents[node]
            is_named = isinstance(owner, ast.Assign) and getattr(owner.targets[0], "id", "") in self.array_types
            if not (is_named or isinstance(owner, ast.Attribute | ast.Compare) or self._is_annotation_or_test(node)):
                self.refuse(
                    node,
                    "`np.ndarray` may stand in an annotation, in a type such as `tuple[np.ndarray, np.ndarray]`, in `isinstance`, and "
                    "in front of a dot. An array is made by `np.zeros` or `np.empty`.",
                )

    def resolve(self, node: ast.expr) -> Any:
        """What the dots stand for, as far as they begin with a module that an import names; _UNKNOWN for any other value."""
        if not isinstance(node, ast.Attribute):
            return _UNKNOWN
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name not in self.imports or name in self.shadowed or not isinstance(node.value.ctx, ast.Load):
                return _UNKNOWN
            owner = self._import(node, self.imports[name])
        else:
            owner = self.resolve(node.value)
        if not isinstance(owner, ModuleType):
            return _UNKNOWN
        return self.ask(node, lambda: self.names.find_member(owner, node.attr))

    def _import(self, node: ast.AST, path: str) -> Any:
        """What an import binds: a module, or something in one."""
        try:
            return self.names.find_module(path)
        except (Closed, ImportError):
            module, _, name = path.rpartition(".")
            if not module:
                return self.ask(node, lambda: self.names.find_module(path))
            return self.ask(node, lambda: self.names.find_member(self.names.find_module(module), name))

    def _check_attribute(self, node: ast.Attribute) -> None:
        root = _find_root(node)
        if root in self.imports and root not in self.shadowed:
            self.ask(node, lambda: self.names.check_forbidden(node.attr, ast.unparse(node)))
        value = self.resolve(node)
        if value is not _UNKNOWN:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(
                    node, f"`{ast.unparse(node)}` is assigned to: it belongs to a library, and everybody uses it."
                )
            self.found.resolved.add(node)
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            owner = self._import(node, self.imports[name]) if name else self.resolve(node.value)
            self._check_placed(node, f"{owner.__name__}.{node.attr}")
            return
        self.ask(node, lambda: self.names.check_attribute(node.attr, node.attr in self.attributes))
        if node.attr not in self.attributes:
            self.ask(node, lambda: self.names.check_forbidden(node.attr, f".{node.attr}"))


_UNKNOWN = object()
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _KernelCheck:
    """A function that Triton compiles: names and statements that Triton's compiler knows."""

    def __init__(self, check: _Check, kernel: Any):
        self.check, self.kernel = check, kernel
        self.refuse = check.refuse
        from triton.compiler.code_generator import CodeGenerator

        self.generator = CodeGenerator
        self.attributes = _list_attributes_of_kernels()
        self.local = set(_list_bound(kernel))
        functions = [node for node in check.tree.body if isinstance(node, ast.FunctionDef)]
        self.plain_functions = {
            node.name for node in functions if node not in check.found.jitted and not _ask_for_constexpr(node)
        }
        self.plain_values = {
            target.id
            for node in check.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.UnaryOp | ast.BinOp)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def run(self) -> None:
        kernel = self.kernel
        if kernel not in self.check.tree.body:
            self.refuse(
                kernel, f"`{kernel.name}` stands inside something else. A kernel begins at the left margin of the file."
            )
        decorators = [d for d in kernel.decorator_list if not needed.is_jit(d, self.check.imports)]
        if decorators or isinstance(kernel, ast.AsyncFunctionDef):
            others = ", ".join(f"`@{ast.unparse(d)}`" for d in kernel.decorator_list)
            self.refuse(
                kernel,
                f"`{kernel.name}` is decorated with {others}. The course launches it with its own settings: keep `@triton.jit`, and remove the others.",
            )
        for value in (k.value for d in kernel.decorator_list if isinstance(d, ast.Call) for k in d.keywords):
            if not all(
                isinstance(part, ast.Constant | ast.List | ast.Tuple | ast.expr_context) for part in ast.walk(value)
            ):
                self.refuse(value, f"`{ast.unparse(value)}` is no plain setting of `@triton.jit`.")
        for node in (
            part for field in (*kernel.body, kernel.args, kernel.returns) if field for part in ast.walk(field)
        ):
            self._check_node(node)

    def _check_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            self.refuse(
                node, f"`{node.name}` is defined inside a kernel. Move it out and decorate it with `@triton.jit`."
            )
        if not isinstance(node, _ALSO_RUN) and not hasattr(self.generator, f"visit_{type(node).__name__}"):
            self.refuse(
                node,
                f"`{_quote_first_words(node)}` is not possible inside a kernel: Triton's compiler knows no such thing.",
            )
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            self.refuse(node, "this line assigns to several names at once; Triton's compiler takes one `=` a line.")
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            self.refuse(
                node,
                f"`{ast.unparse(node)}` is assigned to; a kernel can only assign to names. Store to memory with `tl.store`.",
            )
        if isinstance(node, ast.Name):
            self._check_name(node)
        elif isinstance(node, ast.Attribute):
            self._check_attribute(node)

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if name.startswith("__"):
            self.refuse(node, f"`{name}` is not possible inside a kernel.")
        if not isinstance(node.ctx, ast.Load) or name in self.local:
            if name in self.check.imports:
                self.refuse(node, f"`{name}` is an import of the file; give your own value another name.")
            return
        if name in self.check.imports:
            root = self.check.imports[name].split(".")[0]
            if root != "triton":
                self.refuse(
                    node, f"`{name}` is an import of Python's; inside a kernel there are `tl` and `triton` only."
                )
            if isinstance(self.check.parents[node], ast.Attribute):
                return
            if isinstance(self.check._import(node, self.check.imports[name]), ModuleType):
                self.refuse(node, f"`{name}` is a module; use what is in it.")
            return
        if name in self.plain_values and not self._is_default(node):
            self.refuse(
                node,
                f"`{name}` is a plain Python global, which the compiler refuses. Write `{name} = tl.constexpr(...)` or pass it as an argument.",
            )
        if name in self.plain_functions:
            self.refuse(
                node, f"`{name}` is a Python function of your file, which a kernel cannot call. Put `@triton.jit` on the line above it.",
                "undefined_name",
            )  # fmt: skip
        if name in self.check.bound or name in _IN_KERNELS:
            return
        if hasattr(builtins, name):
            self.refuse(node, f"`{name}` is Python, not Triton; a kernel cannot use it.")
        self.refuse(
            node,
            f"`{name}` is used, and nothing in the kernel defines it. Is a part still missing, or the name mistyped?",
            "undefined_name",
        )

    def _is_default(self, node: ast.AST) -> bool:
        while node is not self.kernel:
            if isinstance(node, ast.arguments):
                return True
            node = self.check.parents[node]
        return False

    def _check_attribute(self, node: ast.Attribute) -> None:
        root = _find_root(node)
        if root is not None and root not in self.local:
            if root in self.check.imports and not self.check.imports[root].startswith("triton"):
                return  # of `np.linalg`, what is wrong is `np`
            if root not in self.check.imports and root not in self.check.bound:
                return
        if self.check.resolve(node) is not _UNKNOWN:
            return
        if node.attr not in self.attributes and node.attr not in self.check.attributes - _NEVER_IN_KERNELS:
            self.refuse(node, f"`.{node.attr}` is not something that a value in a kernel has. Is it mistyped?")


_NEVER_IN_KERNELS = frozenset(dir(str)) | frozenset(dir(ModuleType)) | frozenset(_CLOSED_ATTRIBUTES)


def _list_attributes_of_kernels() -> frozenset[str]:
    """The attributes that Triton gives to the values in a kernel."""
    import triton.language as tl

    classes = [
        kind for name in dir(tl.core) if isinstance(kind := getattr(tl.core, name), type)
        and issubclass(kind, tl.core.base_value | tl.core.base_type | tl.core.dtype)
    ]  # fmt: skip
    public = {name for kind in classes for name in dir(kind) if not name.startswith("_")}
    # the members of its enumerations: tl.PropagateNan.ALL
    public |= {member for name in dir(tl) for member in getattr(getattr(tl, name), "__members__", ())}
    # pointers to blocks and descriptors have them in the interpreter, too
    return frozenset(public | _OF_VALUES | {"load", "store", "gather", "scatter"}) - {
        "handle",
        "handles",
        "with_traceback",
    }


def _ask_for_constexpr(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("constexpr_function") for decorator in node.decorator_list)


def _find_root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _quote_first_words(node: ast.AST) -> str:
    words = ast.unparse(node).splitlines()[0] if isinstance(node, ast.stmt | ast.expr) else type(node).__name__
    return words if len(words) < 60 else words[:57] + "..."


def _list_bound(tree: ast.AST) -> Iterator[str]:
    """Every name that is bound anywhere in ``tree``, but by imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, _DEFINITIONS) and node is not tree:
            yield node.name
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            yield node.name or "_"
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or "_"


def _list_own_attributes(tree: ast.Module) -> Iterator[str]:
    """The attributes that classes of the file have, or that the file gives to objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from _list_bound(ast.Module(node.body, []))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from part.value.replace(",", " ").split()
