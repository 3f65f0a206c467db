"""Load a job's kernels in the process that runs or compiles them: source texts become modules with
their globals.

A kernel comes as units. Each has a text, the number of its first line, and descriptions of its
globals (see ``kernel_source.py``).
"""

from __future__ import annotations

import importlib
import operator
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

# a base name that no file of Triton's has, because debug comments in PTX give only base names
_FILE = "course_kernel_{}.py"


class NoKernel(Exception):
    """The text runs, but does not define a @triton.jit function of that name."""


class Units:
    """The job's source texts as modules. They are written to files, run, and given their
    globals."""

    kind: type = JITFunction  # the type of a kernel in this process

    def __init__(self, units: list[dict[str, Any]], name: str, folder: Path):
        self.units, self.name = units, name
        self.files = [folder / _FILE.format(number) for number in range(len(self.units))]
        self.texts = ["\n" * (unit["first_line"] - 1) + unit["text"] for unit in self.units]
        self.spaces: list[dict] = [{} for _ in self.units]
        self.compiling = "source"

    def load(self) -> Any:
        """Run every unit and return the kernel.

        Raises: any exception of the texts; NoKernel.
        """
        for file, text, space in zip(self.files, self.texts, self.spaces, strict=True):
            file.write_text(text, encoding="utf-8", newline="")
            space.update(__name__=file.stem, __file__=str(file))
        for number, (unit, space) in enumerate(zip(self.units, self.spaces, strict=True)):
            # constants and modules first, because a parameter's default value may name one
            space.update(
                {
                    name: self.decode(value)
                    for name, value in unit["globals"].items()
                    if "jit" not in value
                }
            )
            # Annotations stay text, as Triton reads them, so that none of them is evaluated and
            # fails.
            flags = 0 if unit["jit"] is None else __import__("__future__").annotations.compiler_flag
            exec(
                compile(
                    self.texts[number], str(self.files[number]), "exec", flags, dont_inherit=True
                ),
                space,
            )
            if unit["jit"] is not None:
                space[unit["name"]] = triton.jit(space[unit["name"]], **unit["jit"])
        for unit, space in zip(self.units, self.spaces, strict=True):
            space.update({name: self.decode(value) for name, value in unit["globals"].items()})
        kernel = self.spaces[0].get(self.name)
        if not isinstance(kernel, self.kind):
            raise NoKernel
        return kernel

    def functions(self) -> list[tuple[int, JITFunction]]:
        """List every jitted function of the units, with the number of its unit."""
        numbers = {str(file): number for number, file in enumerate(self.files)}
        jitted = {
            id(value): value
            for space in self.spaces
            for value in space.values()
            if isinstance(value, JITFunction)
        }
        places = (
            (numbers.get(function.fn.__code__.co_filename), function)
            for function in jitted.values()
        )
        return [(number, function) for number, function in places if number is not None]

    def decode(self, value: dict):
        """Return the Python value of a description made in ``kernel_source.py``."""
        ((kind, content),) = value.items()
        if kind == "value":
            return content
        if kind == "constexpr":
            return tl.constexpr(self.decode(content))
        if kind == "dtype":
            return tl.dtype(content)
        if kind == "jit":
            return self.spaces[content][self.units[content]["name"]]
        if kind == "module":
            return importlib.import_module(content)
        if kind == "triton":
            return operator.attrgetter(content[1])(importlib.import_module(content[0]))
        if kind == "namespace":
            module = types.ModuleType(content["name"])
            vars(module).update(
                {name: self.decode(inner) for name, inner in content["names"].items()}
            )
            return module
        if kind == "pointer":
            return _Pointer(content["dtype"], content["address"])
        # an object that a kernel cannot use; the compiler's refusal names its type
        return type(content, (), {})()


@dataclass(frozen=True)
class _Dtype:
    """An object with the same text as a dtype of PyTorch. PyTorch itself is not imported here,
    because it is large and slow to import."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class _Pointer:
    """An object with the attributes of a tensor that the launcher reads."""

    dtype_name: str
    address: int
    dtype: _Dtype = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "dtype", _Dtype(self.dtype_name))

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        return 2**31  # large enough: only the AMD backend specialises on it, for smaller buffers
