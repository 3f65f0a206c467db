"""Runs a kernel once in Triton's interpreter, on copies of its tensors, and keeps every access: the data of the access map.

In CPU mode the kernel runs in this process. On a GPU this process compiles, so a second one interprets: this file is
then a script, ``python -I access_run.py FOLDER``. A learner's file always runs there, where it can be ended.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ["COURSE_DEVICE"] = "cpu"

from course_lib import runtime
from course_lib.errors import CourseError

SECONDS = 60.0  # for the second process, start and kernel together
MOST_BYTES = 64 << 20  # of all tensors: they are copied
MOST_PROGRAMS = 1024
_LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # nothing to the interpreter


@dataclass(frozen=True)
class Tensor:
    """A tensor of the launch: its name in the map, and where its elements lie in buffer number ``buffer``."""

    name: str
    dtype: str  # Triton's name: "fp16", "i64"
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    start: int  # bytes from the buffer's beginning to element 0

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize


@dataclass(frozen=True, eq=False)
class Access:
    """One memory operation of one program: ``offsets`` in elements from element 0 of ``tensor``, one a lane that takes part.

    ``tensor`` is None for memory that belongs to none of the tensors.
    """

    program: int
    kind: str  # "load", "store", or an atomic's name
    tensor: str | None
    offsets: np.ndarray
    masked: int
    itemsize: int
    line: int | None

    @property
    def bytes(self) -> int:
        return self.offsets.size * self.itemsize


@dataclass(frozen=True, eq=False)
class Recording:
    """What a launch asked of memory, in the order the interpreter ran it. ``fault`` is what stopped it, in words, or ""."""

    kernel: str
    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    accesses: tuple[Access, ...]
    source: Mapping[int, str] = field(default_factory=dict)  # lines of the kernel
    fault: str = ""
    apart: str = ""  # why a second process interpreted it; "" if this one did

    @property
    def programs(self) -> int:
        return int(np.prod(self.grid, dtype=np.int64))


@dataclass
class Job:
    """A launch as plain data: the buffers' bytes, the tensors in them, and the other arguments, in the kernel's order.

    ``arguments`` are ("tensor", name) or ("value", value); ``constexprs`` by name.
    """

    kernel: str
    grid: tuple[int, ...]
    tensors: list[Tensor]
    buffers: list[bytes]
    arguments: list[tuple[str, Any]]
    constexprs: dict[str, Any]


def record(kernel: Any, grid: Any, arguments: Sequence[Any], named: Mapping[str, Any], *, apart: bool = False) -> Recording:
    """Run ``kernel[grid](*arguments, **named)`` in the interpreter, on copies.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        apart: in a second process even if this one interprets; a KernelSource always goes there.

    Raises: CourseError if the launch does not fit the kernel, is too large, or the second process fails; TypeError for
        what is no kernel.
    """
    from course_lib.compiler import KernelSource, source_text, units_of

    why = ""
    if not runtime.current().interpreted:
        why = "This process compiles its kernels, so a second one interpreted this launch."
    elif isinstance(kernel, KernelSource) or apart:
        why = "A second process interpreted this launch."
    job = _job(kernel, grid, arguments, named)
    accesses, fault = _second_process(job, units_of(kernel)) if why else run(kernel, job)
    text = source_text(kernel)
    source = dict(enumerate(text.text.split("\n"), text.first_line))
    return Recording(job.kernel, job.grid, tuple(job.tensors), tuple(accesses), source, fault, why)


def run(kernel: Any, job: Job) -> tuple[list[Access], str]:
    """The accesses of the launch, and what stopped it, in words. Only where Triton interprets."""
    from course_lib.interpreter import launch
    from course_lib.interpreter.bounds import OutOfBounds, Region, checked
    from course_lib.interpreter.trace import tracing

    memory = [np.frombuffer(bytearray(data) + bytes(64), dtype=np.uint8) for data in job.buffers]
    regions, pointers = [], {}
    for tensor in job.tensors:
        address = memory[tensor.buffer].ctypes.data + tensor.start
        regions.append(Region(tensor.name, address, tensor.itemsize, tensor.shape, tensor.strides))
        pointers[tensor.name] = launch.pointer(address, tensor.dtype)
    values = [
        pointers[value] if kind == "tensor" else launch.integer(value) if type(value) is int else value for kind, value in job.arguments
    ]
    fault = ""
    with tracing(regions) as trace:
        try:
            with checked(regions):
                launch.launch(kernel, job.grid, values, job.constexprs)
        except OutOfBounds as outside:
            fault = f"It was stopped there: {outside}."
        except Exception as raised:
            fault = f"It was stopped there: {_words(raised)}."
    sizes = (*job.grid, 1, 1)
    accesses = [
        Access(
            event.program[0] + sizes[0] * (event.program[1] + sizes[1] * event.program[2]),
            event.kind, event.tensor, event.offsets, event.masked, event.itemsize, event.line,
        )
        for event in trace.events
        if event.kind != "barrier"
    ]  # fmt: skip
    return accesses, fault


def _words(raised: BaseException) -> str:
    """The kernel's own exception, under Triton's wrappers."""
    chain = [raised]
    while chain[-1].__cause__ is not None and len(chain) < 50:
        chain.append(chain[-1].__cause__)
    return f"{type(chain[-1]).__name__}: {' '.join(str(chain[-1]).split())[:300]}"


# ---- from arguments to a job


def _job(kernel: Any, grid: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Job:
    name, parameters = _parameters(kernel)
    unknown = [key for key in named if key not in parameters and key not in _LAUNCH_OPTIONS]
    if unknown:
        raise CourseError(f"`{name}` has no parameter `{unknown[0]}`; it has {', '.join(parameters)}.")
    if len(arguments) > len(parameters):
        raise CourseError(f"`{name}` has {len(parameters)} parameters, and {len(arguments)} arguments were given.")
    given = dict(zip(parameters, arguments, strict=False)) | {key: value for key, value in named.items() if key in parameters}
    missing = [key for key, parameter in parameters.items() if key not in given and parameter.needed]
    if missing:
        raise CourseError(f"`{name}` lacks an argument for `{missing[0]}`.")
    grid = _grid(grid, given)
    tensors, buffers, of_storage, ordered, constants = [], [], {}, [], {}
    in_order = True
    for key, parameter in parameters.items():
        if key not in given or parameter.constant:
            in_order = False
            if key in given:
                constants[key] = given[key]
            continue
        value = given[key]
        if hasattr(value, "untyped_storage"):
            tensors.append(_tensor(key, value, buffers, of_storage))
        if in_order:
            ordered.append(("tensor", tensors[-1].name) if hasattr(value, "untyped_storage") else ("value", value))
        elif hasattr(value, "untyped_storage"):
            raise CourseError(f"`{key}` of `{name}` stands behind a constant; the map needs a kernel whose tensors come first.")
        else:
            constants[key] = value
    if not tensors:
        raise CourseError(f"`{name}` was given no tensor, so there is no memory to map.")
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise CourseError(f"two parameters of `{name}` have one name but for the ending `_ptr`; rename one.")
    return Job(name, grid, tensors, buffers, ordered, constants)


@dataclass(frozen=True)
class _Parameter:
    needed: bool  # has no default
    constant: bool  # tl.constexpr


def _parameters(kernel: Any) -> tuple[str, dict[str, _Parameter]]:
    """The kernel's name and its parameters, in order."""
    from course_lib.compiler import KernelSource

    if isinstance(kernel, KernelSource):
        try:
            tree = ast.parse(kernel.text)
        except SyntaxError as bad:
            raise CourseError(f"{kernel.file}, line {bad.lineno}: this is not valid Python ({bad.msg}).") from None
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == kernel.name:
                names = (*node.args.posonlyargs, *node.args.args)
                without = len(names) - len(node.args.defaults)
                annotated = [ast.unparse(argument.annotation) if argument.annotation else "" for argument in names]
                return kernel.name, {argument.arg: _Parameter(i < without, "constexpr" in annotated[i]) for i, argument in enumerate(names)}
        raise CourseError(f"{kernel.file} has no function `{kernel.name}`.")
    function = kernel
    while not inspect.isfunction(function):
        if not hasattr(function, "fn"):
            raise TypeError(f"{kernel!r} is no kernel; pass a @triton.jit function or a KernelSource")
        function = function.fn
    empty = inspect.Parameter.empty
    return function.__name__, {
        name: _Parameter(parameter.default is empty, "constexpr" in str(parameter.annotation))
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _grid(grid: Any, given: Mapping[str, Any]) -> tuple[int, ...]:
    grid = grid(dict(given)) if callable(grid) else grid
    grid = tuple(int(size) for size in (grid if isinstance(grid, (tuple, list)) else (grid,)))
    programs = int(np.prod(grid, dtype=np.int64))
    if not 1 <= len(grid) <= 3 or min(grid) < 1 or programs > MOST_PROGRAMS:
        raise CourseError(f"the map takes a grid of 1 to 3 sizes and 1 to {MOST_PROGRAMS} programs; this one is {grid}. Use fewer rows.")
    return grid


def _tensor(parameter: str, value: Any, buffers: list[bytes], of_storage: dict[tuple[str, int], int]) -> Tensor:
    """The tensor's place in a copy of its storage; tensors that share memory share the copy."""
    import torch

    storage = value.untyped_storage()
    key = (str(value.device), storage.data_ptr())
    if key not in of_storage:
        if storage.nbytes() + sum(map(len, buffers)) > MOST_BYTES:
            raise CourseError(f"the tensors take more than {MOST_BYTES >> 20} MiB, too much to copy for a map. Use fewer rows.")
        of_storage[key] = len(buffers)
        flat = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
        buffers.append(flat.cpu().numpy().tobytes())
    return Tensor(
        parameter.removesuffix("_ptr"), _triton_name(value.dtype), value.element_size(), tuple(value.shape), tuple(value.stride()),
        of_storage[key], value.storage_offset() * value.element_size(),
    )  # fmt: skip


def _triton_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    known = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "bool": "int1"}
    if name in known or name.startswith(("int", "uint")):
        return known.get(name, name)
    raise CourseError(f"a tensor of {dtype} cannot be mapped; it can be floating point of 16 to 64 bits, integer or bool.")


# ---- the second process


def _second_process(job: Job, units: list[dict]) -> tuple[list[Access], str]:
    from course_lib.compiler import described

    folder = Path(tempfile.mkdtemp(prefix="course-map-"))
    try:
        for number, data in enumerate(job.buffers):
            (folder / f"{number}.in").write_bytes(data)
        plain = {
            "kernel": job.kernel, "grid": job.grid, "tensors": [vars(tensor) for tensor in job.tensors], "buffers": len(job.buffers),
            "arguments": [(kind, value if kind == "tensor" else described(value)) for kind, value in job.arguments],
            "constexprs": {name: described(value) for name, value in job.constexprs.items()}, "units": units,
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(plain, default=str))
        return _run_second(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_second(folder: Path) -> tuple[list[Access], str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COURSE_", "PYTHON", "TRITON_INTERPRET"))}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).resolve()), str(folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        raise CourseError(
            f"the kernel did not end within {SECONDS:g} seconds in the interpreter, and was stopped. Does a loop wait?"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not (folder / "answer.json").exists():
        said = (folder / "log").read_bytes()[-1000:].decode("utf-8", "replace").strip().splitlines()[-1:] or ["it printed nothing"]
        raise CourseError(f"the process that interprets the kernel ended with code {code}: {said[0]}")
    answer = json.loads((folder / "answer.json").read_text())
    if answer["refused"]:
        raise CourseError(answer["refused"])
    offsets = np.load(folder / "offsets.npy")
    accesses, at = [], 0
    for program, kind, tensor, lanes, masked, itemsize, line in answer["accesses"]:
        accesses.append(Access(program, kind, tensor, offsets[at : at + lanes], masked, itemsize, line))
        at += lanes
    return accesses, answer["fault"]


def main(folder: Path) -> None:
    """The second process: read the job, interpret the kernel, leave its accesses as ``answer.json`` and ``offsets.npy``."""
    import course_lib  # noqa: F401 - chooses the interpreter and mends its rounding
    from course_lib import compile_server
    from course_lib.interpreter import hooks

    import triton.language  # isort: skip - after the choice
    from triton.runtime.jit import KernelInterface  # isort: skip

    hooks.patch()
    job = json.loads((folder / "job.json").read_text())
    units = compile_server.Units({"units": job["units"], "name": job["kernel"]}, folder)
    units.kind = KernelInterface
    for space in units.spaces:  # the interpreter looks for it among a function's globals, and a helper may not name it
        space["_triton_language"] = triton.language
    try:
        kernel = units.load()
    except compile_server.NoKernel:
        refused = f"{job['units'][0]['file']} has no @triton.jit function named `{job['kernel']}`."
        _leave(folder, [], "", refused)
        return
    except BaseException as raised:  # whatever the learner's file does while it is imported
        lines = [frame.lineno for frame in traceback.extract_tb(raised.__traceback__) if frame.filename == str(units.files[0])]
        line = lines[-1] if lines else getattr(raised, "lineno", None)
        where = f"{job['units'][0]['file']}{f', line {line}' if line else ''}"
        _leave(folder, [], "", f"{where}: {type(raised).__name__}: {raised}.")
        return
    tensors = [
        Tensor(**described | {"shape": tuple(described["shape"]), "strides": tuple(described["strides"])}) for described in job["tensors"]
    ]
    buffers = [(folder / f"{number}.in").read_bytes() for number in range(job["buffers"])]
    arguments = [(kind, value if kind == "tensor" else units.decode(value)) for kind, value in job["arguments"]]
    constexprs = {name: units.decode(value) for name, value in job["constexprs"].items()}
    accesses, fault = run(kernel, Job(job["kernel"], tuple(job["grid"]), tensors, buffers, arguments, constexprs))
    _leave(folder, accesses, fault, "")


def _leave(folder: Path, accesses: list[Access], fault: str, refused: str) -> None:
    np.save(folder / "offsets.npy", np.concatenate([np.zeros(0, np.int64), *(access.offsets for access in accesses)]))
    rows = [(a.program, a.kind, a.tensor, a.offsets.size, a.masked, a.itemsize, a.line) for a in accesses]
    part = folder / "answer.part"
    part.write_text(json.dumps({"accesses": rows, "fault": fault, "refused": refused}))
    part.rename(folder / "answer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
