"""A kernel as text that another process can run: its own text, that of the jitted functions it
calls, and their globals."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.base.closures import read_closure
from course_lib.base.errors import CourseError


@dataclass(frozen=True)
class Pointer:
    """A tensor argument without the tensor. ``dtype`` is Triton's name or PyTorch's; ``aligned``:
    its address is a multiple of 16 bytes."""

    dtype: str
    aligned: bool = True


@dataclass(frozen=True)
class KernelSource:
    """The text of a whole file with kernels. ``name`` is the kernel's, ``first_line`` the number of
    the text's first line in ``file``.

    ``modules`` are modules that the text may use without an import, by the name that it uses.
    """

    text: str
    name: str
    file: str | Path
    first_line: int = 1
    modules: dict[str, str] = field(default_factory=dict)


def source_text(kernel: Any) -> KernelSource:
    """Return the text of a kernel, its file and its first line. The line numbers are those of
    :attr:`CompileReport.lines`.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource, which is cut
            down to the function.

    Raises: CourseError if the source text cannot be found; TypeError if ``kernel`` is not a kernel.
    """
    if not isinstance(kernel, KernelSource):
        sources = collect(kernel)
        unit = sources.units[0]
        return KernelSource(
            unit["text"].rstrip("\n"), sources.name, sources.files[0], unit["first_line"]
        )
    text = kernel.text.replace("\r\n", "\n").replace("\r", "\n")
    # return the whole text; the compiler will report the error
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == kernel.name:
                lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
                return KernelSource(
                    "\n".join(lines), kernel.name, kernel.file, kernel.first_line + node.lineno - 1
                )
    return KernelSource(text.rstrip("\n"), kernel.name, kernel.file, kernel.first_line)


def describe_units(kernel: Any) -> list[dict[str, Any]]:
    """Describe a kernel by the texts that run it in another process: its own first, then those of
    the jitted functions it calls.

    ``units.Units`` loads these descriptions. Here each has one more key: ``file``, the name to show
    to the learner.

    Raises: CourseError if a source text cannot be found; TypeError if ``kernel`` is not a kernel.
    """
    sources = collect(kernel)
    return [unit | {"file": file} for unit, file in zip(sources.units, sources.files, strict=True)]


@dataclass
class Sources:
    """A kernel's source texts for another process (``units``), and the names of their files to show
    to the learner.

    ``indents``: columns of indentation that were removed from each text; ``kernel_line``: the line
    of the kernel's own ``def``.
    """

    name: str
    units: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    indents: list[int] = field(default_factory=list)
    kernel_line: int = 1


def collect(kernel: Any) -> Sources:
    """Collect the texts of a kernel: a @triton.jit function, interpreted or compiled, or a
    KernelSource.

    Raises: CourseError if a source text cannot be found; TypeError if ``kernel`` is not a kernel.
    """
    return _from_text(kernel) if isinstance(kernel, KernelSource) else _Collector(kernel).sources


def _from_text(kernel: KernelSource) -> Sources:
    sources = Sources(kernel.name)
    # Count lines as Python does. units.Units puts empty lines before the text, so that its line
    # numbers are those of the file.
    text = kernel.text.replace("\r\n", "\n").replace("\r", "\n")
    module_names = {name: {"module": module} for name, module in kernel.modules.items()}
    sources.units.append(
        {
            "name": kernel.name,
            "text": text,
            "first_line": kernel.first_line,
            "globals": module_names,
            "jit": None,
        }
    )
    sources.files.append(str(kernel.file))
    sources.indents.append(0)
    sources.kernel_line = kernel.first_line + next(
        (
            number
            for number, line in enumerate(text.split("\n"))
            if line.startswith(f"def {kernel.name}(")
        ),
        0,
    )
    return sources


class _Collector:
    """The collector of the source text of a @triton.jit function, of the jitted functions it calls,
    and of the globals they name."""

    def __init__(self, kernel: Any):
        from triton.runtime.jit import KernelInterface

        self.jitted = KernelInterface
        if not isinstance(kernel, KernelInterface):
            raise TypeError(
                f"{kernel!r} is no kernel; pass a @triton.jit function or a KernelSource"
            )
        self.numbers: dict[int, int] = {}
        self.sources = Sources(_innermost(kernel)[0].__name__)
        self.add(kernel)
        self.sources.kernel_line = self.sources.units[0]["first_line"]

    def add(self, kernel: Any) -> int:
        """Return the number of the function's unit, and add the unit if the function is new."""
        function, wrapper = _innermost(kernel)
        if id(function) in self.numbers:
            return self.numbers[id(function)]
        text, first_line, indent = _definition(function, wrapper)
        number = self.numbers[id(function)] = len(self.sources.units)
        unit = {
            "name": function.__name__,
            "text": text,
            "first_line": first_line,
            "globals": {},
            "jit": _jit_options(wrapper),
        }
        self.sources.units.append(unit)
        self.sources.files.append(_display_file(function.__code__.co_filename))
        self.sources.indents.append(indent)
        visible_names = function.__globals__ | read_closure(function)
        tree = ast.parse(text)
        used = sorted(
            {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            & visible_names.keys()
        )
        unit["globals"] = {name: self.describe(visible_names[name], name, tree) for name in used}
        return number

    def describe(self, value, name: str, tree: ast.AST) -> dict:
        """Describe a global for the process that compiles. A module other than triton, math and
        numpy is reduced to the attributes that the kernel names."""
        if isinstance(value, types.ModuleType):
            if value.__name__.split(".")[0] in ("triton", "math", "numpy"):
                return {"module": value.__name__}
            names = {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == name
                and hasattr(value, node.attr)
            }
            inner = {
                attribute: self.describe(getattr(value, attribute), "", tree)
                for attribute in sorted(names)
            }
            return {"namespace": {"name": value.__name__, "names": inner}}
        function = _innermost(value)[0] if isinstance(value, self.jitted) else value
        module = getattr(function, "__module__", None) or ""
        if (
            isinstance(module, str)
            and module.split(".")[0] == "triton"
            and hasattr(function, "__qualname__")
        ):
            return {"triton": [module, function.__qualname__]}
        if isinstance(value, self.jitted):
            return {"jit": self.add(value)}
        return describe_constant(value, strict=False)


def _innermost(kernel) -> tuple[types.FunctionType, object]:
    """Return the Python function under ``@triton.jit`` and the decorators above it (autotune,
    heuristics), and its jit wrapper."""
    wrapper = kernel
    while not isinstance(wrapper.fn, types.FunctionType):
        wrapper = wrapper.fn
    return wrapper.fn, wrapper


def _definition(function: types.FunctionType, wrapper) -> tuple[str, int, int]:
    """Return the text of a function from its ``def`` on, the number of that line, and its
    indentation."""
    try:
        raw, first_line = inspect.getsourcelines(function)
    except OSError:
        raise CourseError(
            f"the source text of `{function.__name__}` cannot be found, and the compiler works on"
            " text. Define the kernel in a file or in a notebook cell."
        ) from None
    # the text at decoration; the file may have changed since
    raw = getattr(wrapper, "raw_src", raw)
    text = textwrap.dedent("".join(raw))
    below_decorators = ast.parse(text).body[0].lineno - 1
    indent = len(raw[0]) - len(raw[0].lstrip())
    return "\n".join(text.split("\n")[below_decorators:]), first_line + below_decorators, indent


def _jit_options(wrapper) -> dict:
    """Return the arguments of ``@triton.jit(...)`` that change the code; interpreted functions keep
    them in ``kwargs``."""
    options = getattr(wrapper, "kwargs", None) or vars(wrapper)
    names = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name in names
        if (value := options.get(name))
    }


def _display_file(filename: str) -> str:
    if "ipykernel_" in filename or filename.startswith("<"):
        return "this cell"
    return paths.shown(Path(filename))


def describe_argument(value: Any) -> dict[str, Any]:
    """Describe an argument of a launch (a tensor, a Pointer, a constant) for
    ``units.Units.decode``.

    Raises: TypeError for a value of another type.
    """
    if isinstance(value, Pointer):
        return {
            "pointer": {
                "dtype": _TORCH_NAMES.get(value.dtype, value.dtype),
                "address": 0 if value.aligned else 2,
            }
        }
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return {
            "pointer": {"dtype": str(value.dtype).split(".")[-1], "address": value.data_ptr() % 16}
        }
    return describe_constant(value)


# Triton's names of dtypes that PyTorch names differently; the launcher reads PyTorch's names
_TORCH_NAMES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip


def describe_constant(value: Any, strict: bool = True) -> dict[str, Any]:
    """Describe a constant of a kernel (a number, a bool, None, text, a tl.dtype) for
    ``units.Units.decode``.

    Args:
        strict: False describes a value of another type by the type's name, so that the compiler
            refuses it.

    Raises: TypeError if strict, and the value has another type.
    """
    if type(value) in (bool, int, float, str) or value is None:
        return {"value": value}
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if kind == "triton.language.core.constexpr":
        return {"constexpr": describe_constant(value.value, strict)}
    if kind == "triton.language.core.dtype":
        return {"dtype": value.name}
    if (
        strict
        and kind.startswith("numpy.")
        and hasattr(value, "item")
        and getattr(value, "shape", None) == ()
    ):
        return describe_constant(value.item())
    if strict:
        raise TypeError(
            f"{value!r} is no argument of a kernel that can be described: pass a tensor, a Pointer,"
            " a number, a bool or None"
        )
    return {"opaque": type(value).__name__}
