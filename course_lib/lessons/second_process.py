"""A launch as plain data, and a second process that interprets it if this one cannot, or should
not.

A process either compiles its kernels or interprets them. On a GPU this one compiles, so a second
one has to interpret. A learner's file always runs in the second process, because that can be
stopped.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.base.plain import decode, encode
from course_lib.base.translation import mark as N_
from course_lib.base.worker import WorkerFailure
from course_lib.launching.description import Launch, LaunchTensor
from course_lib.sandbox import jobs
from course_lib.sandbox.jobs import JobAnswer, JobFailure, ResourceLimits
from course_lib.sandbox.machine import Exchange, Machine, ServerKind
from course_lib.sandbox.stage import Stage

MOST_BYTES = 64 << 20  # limit on all tensors together, because they are copied
MOST_PROGRAMS = 1024
# bytes between two storages at least, and to which a storage is aligned
_GAP, _ALIGNMENT = 4096, 64
_LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # the interpreter ignores them


@dataclass(frozen=True)
class LaunchJob(Launch):
    """A launch and the bytes of its memory: those of the storages of its tensors, with gaps between
    them."""

    memory: bytes = b""


# ---- the choice of the process that interprets a launch


def find_reason(kernel: Any, apart: bool) -> str:
    """Return a sentence that says why a second process interprets the kernel; "" if this one does.
    ``apart`` forces a second one."""
    from course_lib.compiler import KernelSource

    if not runtime.current().interpreted:
        return "This process compiles its kernels, so a second one interpreted this launch."
    return (
        "A second process interpreted this launch."
        if apart or isinstance(kernel, KernelSource)
        else ""
    )


def read_source_lines(kernel: Any) -> dict[int, str]:
    """Return the kernel's source lines by their number in its file."""
    from course_lib.compiler import source_text

    text = source_text(kernel)
    return dict(enumerate(text.text.split("\n"), text.first_line))


def describe_exception(raised: BaseException) -> str:
    """Describe the kernel's own exception, which Triton wraps in others."""
    chain = [raised]
    while chain[-1].__cause__ is not None and len(chain) < 50:
        chain.append(chain[-1].__cause__)
    return f"{type(chain[-1]).__name__}: {' '.join(str(chain[-1]).split())[:300]}"


# ---- from arguments to a job


def make_job(
    kernel: Any, grid: Any, arguments: Sequence[Any], named: Mapping[str, Any]
) -> LaunchJob:
    """Convert ``kernel[grid](*arguments, **named)`` to plain data; the tensors' storages are
    copied.

    Raises: CourseError if the launch does not fit the kernel, or is too large; TypeError if
    ``kernel`` is not a kernel.
    """
    name, parameters = _read_parameters(kernel)
    arguments_by_name = _name_arguments(name, parameters, arguments, named)
    grid = _read_grid(grid, arguments_by_name)
    tensors, memory, places, ordered, constants = [], bytearray(_GAP), {}, [], {}
    in_order = True
    for key, parameter in parameters.items():
        value = arguments_by_name.get(key)
        if hasattr(value, "untyped_storage") and not parameter.constant:
            if not in_order:
                raise CourseError(
                    f"`{key}` of `{name}` stands behind a constant; the map needs a kernel whose"
                    " tensors come first."
                )
            tensors.append(_copy_tensor(key, value, memory, places))
            ordered.append(tensors[-1].name)
            continue
        in_order = (
            in_order
            and key in arguments_by_name
            and not parameter.constant
            and not isinstance(value, str)
        )
        if in_order:
            ordered.append(value)
        elif key in arguments_by_name:
            constants[key] = value
    if not tensors:
        raise CourseError(f"`{name}` was given no tensor, so there is no memory to map.")
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise CourseError(
            f"two parameters of `{name}` have one name but for the ending `_ptr`; rename one."
        )
    return LaunchJob(name, grid, tuple(tensors), tuple(ordered), constants, memory=bytes(memory))


@dataclass(frozen=True)
class _Parameter:
    needed: bool  # it has no default
    constant: bool  # it is a tl.constexpr


def _read_parameters(kernel: Any) -> tuple[str, dict[str, _Parameter]]:
    """Return the kernel's name and its parameters, in order."""
    from course_lib.compiler import KernelSource

    if isinstance(kernel, KernelSource):
        try:
            tree = ast.parse(kernel.text)
        except SyntaxError as bad:
            raise CourseError(
                f"{kernel.file}, line {bad.lineno}: this is not valid Python ({bad.msg})."
            ) from None
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == kernel.name:
                names = (*node.args.posonlyargs, *node.args.args)
                without = len(names) - len(node.args.defaults)
                annotated = [
                    ast.unparse(argument.annotation) if argument.annotation else ""
                    for argument in names
                ]
                return kernel.name, {
                    argument.arg: _Parameter(i < without, "constexpr" in annotated[i])
                    for i, argument in enumerate(names)
                }
        raise CourseError(f"{kernel.file} has no function `{kernel.name}`.")
    function = kernel
    while not inspect.isfunction(function):
        if not hasattr(function, "fn"):
            raise TypeError(
                f"{kernel!r} is no kernel; pass a @triton.jit function or a KernelSource"
            )
        function = function.fn
    empty = inspect.Parameter.empty
    return function.__name__, {
        name: _Parameter(parameter.default is empty, "constexpr" in str(parameter.annotation))
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _name_arguments(
    kernel_name: str,
    parameters: Mapping[str, _Parameter],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments by the kernel's parameters, without options of the launch.

    Raises: CourseError if they do not fit the parameters.
    """
    unknown = [key for key in named if key not in parameters and key not in _LAUNCH_OPTIONS]
    if unknown:
        raise CourseError(
            f"`{kernel_name}` has no parameter `{unknown[0]}`; it has {', '.join(parameters)}."
        )
    if len(arguments) > len(parameters):
        raise CourseError(
            f"`{kernel_name}` has {len(parameters)} parameters, and {len(arguments)} arguments"
            " were given."
        )
    arguments_by_name = dict(zip(parameters, arguments, strict=False)) | {
        key: value for key, value in named.items() if key in parameters
    }
    for key, parameter in parameters.items():
        if parameter.needed and key not in arguments_by_name:
            raise CourseError(f"`{kernel_name}` lacks an argument for `{key}`.")
    return arguments_by_name


def _read_grid(grid: Any, arguments_by_name: Mapping[str, Any]) -> tuple[int, ...]:
    grid = grid(dict(arguments_by_name)) if callable(grid) else grid
    grid = tuple(int(size) for size in (grid if isinstance(grid, (tuple, list)) else (grid,)))
    programs = int(np.prod(grid, dtype=np.int64))
    if not 1 <= len(grid) <= 3 or min(grid) < 1 or programs > MOST_PROGRAMS:
        raise CourseError(
            f"the map takes a grid of 1 to 3 sizes and 1 to {MOST_PROGRAMS} programs; this one is"
            f" {grid}. Use fewer rows."
        )
    return grid


def _copy_tensor(
    parameter: str, value: Any, memory: bytearray, places: dict[tuple[str, int], int]
) -> LaunchTensor:
    """Copy the tensor's storage to the end of ``memory``, unless another tensor has brought it, and
    return the tensor's place there."""
    import torch

    storage = value.untyped_storage()
    key = (str(value.device), storage.data_ptr())
    if key not in places:
        if storage.nbytes() + len(memory) > MOST_BYTES:
            raise CourseError(
                f"the tensors take more than {MOST_BYTES >> 20} MiB, too much to copy for a map."
                " Use fewer rows."
            )
        places[key] = len(memory)
        memory += (
            torch.empty(0, dtype=torch.uint8, device=value.device)
            .set_(storage)
            .cpu()
            .numpy()
            .tobytes()
        )
        memory += bytes(_GAP + -len(memory) % _ALIGNMENT)
    return LaunchTensor(
        parameter.removesuffix("_ptr"), _name_dtype(value.dtype), value.element_size(),
        tuple(value.shape), tuple(value.stride()),
        places[key] + value.storage_offset() * value.element_size(),
    )  # fmt: skip


def _name_dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    names = {
        "float64": "fp64",
        "float32": "fp32",
        "float16": "fp16",
        "bfloat16": "bf16",
        "bool": "int1",
    }
    if name in names or name.startswith(("int", "uint")):
        return names.get(name, name)
    raise CourseError(
        f"a tensor of {dtype} cannot be mapped; it can be floating point of 16 to 64 bits, integer"
        " or bool."
    )


# ---- the second process, seen from the first


T = TypeVar("T")


@dataclass(frozen=True)
class _Question:
    """A call of ``function`` in the second process. The values in ``job`` are described, see
    ``compiler/units.py``."""

    function: str
    options: dict[str, Any]
    units: list[dict[str, Any]]
    job: LaunchJob


@dataclass(frozen=True)
class _Answer:
    """The value that the function returned, or the reason why it returned none."""

    returned: Any
    refused: str = ""


def interpret_apart(
    function: Callable[..., T], kernel: Any, job: LaunchJob, seconds: float, **options: Any
) -> T:
    """Call ``function(kernel, job, **options)`` in the second process.

    Args:
        function: a top-level function of a module of the course. Its options consist of JSON types;
            its annotation says what it returns, in types that :mod:`course_lib.base.plain` knows.
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        seconds: limit of processor time for everything that the process does.

    Raises: CourseError if the kernel's file cannot run, the time is up, the process ends, or
    ``function`` raises a CourseError.
    """
    from course_lib.compiler import describe_constant, describe_units

    described = _change_values(job, describe_constant)
    question = _Question(
        f"{function.__module__}:{function.__qualname__}", options, describe_units(kernel), described
    )
    limits = replace(_LIMITS, case=seconds, total=seconds)
    try:
        kind = ServerKind(
            "course_lib.lessons.second_process:make_machine", function.__module__, device="cpu"
        )
        plain = jobs.ask(kind, {"question": encode(_Question, question)}, limits)
    except JobFailure as failure:
        raise CourseError(_describe_end(failure.answer, seconds)) from None
    except WorkerFailure as failed:
        raise jobs.describe_not_started(N_("interprets kernels"), failed) from None
    with expect_sense():
        answer = decode(_Answer, plain)
        if answer.refused:
            raise CourseError(answer.refused[:_LONGEST])
        return decode(get_type_hints(function)["return"], answer.returned)


def _change_values(job: LaunchJob, change: Callable[[Any], Any]) -> LaunchJob:
    """Return the job with its arguments and constants changed, except for the tensors."""
    arguments = tuple(value if isinstance(value, str) else change(value) for value in job.arguments)
    return replace(
        job,
        arguments=arguments,
        constexprs={name: change(value) for name, value in job.constexprs.items()},
    )


@contextlib.contextmanager
def expect_sense() -> Iterator[None]:
    """Wrap the block that parses an answer. The kernel's file can take over the second process, so
    the answer may be anything.

    Raises: CourseError if the answer does not have the form that ``work`` writes.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise CourseError(
            "the process that interprets the kernel gave no answer that makes sense; what does the"
            " kernel's file do when it is imported?"
        ) from None


def _describe_end(answer: JobAnswer, seconds: float) -> str:
    if answer.cause_of_end in ("timed out", "waited") and answer.stage is not Stage.STARTING:
        measured = "of processor time " if answer.cause_of_end == "timed out" else ""
        return (
            f"the kernel did not end within {seconds:g} seconds {measured}in the interpreter, and"
            " was stopped. Does a loop wait?"
        )
    ending = (
        f"with code {answer.exit_code}"
        if answer.exit_code is not None
        else f"({answer.cause_of_end})"
    )
    last_line = (answer.printed.strip().splitlines() or ["it printed nothing"])[-1][:300]
    return f"the process that interprets the kernel ended {ending}: {last_line}"


_LONGEST = 1500  # limit on the characters of the process's message
_LIMITS = ResourceLimits(file_bytes=256 << 20, disk_bytes=512 << 20)


# ---- the second process itself


def make_machine(module: str) -> Machine:
    return _SecondProcess(module)


class _SecondProcess(Machine):
    """The machine that interprets one launch: it loads the kernel's source texts and calls the
    job's function, defined in ``module``."""

    def __init__(self, module: str) -> None:
        import course_lib

        if course_lib.MODE != "cpu":
            raise RuntimeError("this process does not interpret")
        from course_lib import interpreter
        from course_lib.interpreter import hooks

        hooks.patch()
        # Import everything now: a job's process cannot read the course's files any more.
        rooms = [
            module_info.name
            for module_info in pkgutil.iter_modules(interpreter.__path__, "course_lib.interpreter.")
        ]
        for name in (
            "ml_dtypes",
            "course_lib.compiler.units",
            "course_lib.launching.interpreted",
            module,
            *rooms,
        ):
            importlib.import_module(name)

    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        exchange.begin_case(0)
        try:
            answer = _Answer(_run(exchange.folder, decode(_Question, job["question"])))
        except CourseError as refused:
            answer = _Answer(None, str(refused))
        exchange.write_answer(encode(_Answer, answer))


def _run(folder: Path, question: _Question) -> Any:
    """Write the kernel's source texts into ``folder``, load the kernel, and return the result of
    the job's function."""
    import triton.language
    from triton.runtime.jit import KernelInterface

    from course_lib.compiler.units import NoKernel, Units

    units = Units(question.units, question.job.entry_point, folder)
    units.kind = KernelInterface
    # the interpreter needs triton.language among a function's globals; a helper may not import it
    for space in units.spaces:
        space["_triton_language"] = triton.language
    file = question.units[0]["file"]
    try:
        kernel = units.load()
    except NoKernel:
        raise CourseError(
            f"{file} has no @triton.jit function named `{question.job.entry_point}`."
        ) from None
    except BaseException as raised:  # the learner's file can raise anything while it is imported
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(raised.__traceback__)
            if frame.filename == str(units.files[0])
        ]
        line = lines[-1] if lines else getattr(raised, "lineno", None)
        raise CourseError(
            f"{file}{f', line {line}' if line else ''}: {type(raised).__name__}: {raised}."
        ) from raised
    return pkgutil.resolve_name(question.function)(
        kernel, _change_values(question.job, units.decode), **question.options
    )
