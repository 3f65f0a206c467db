"""Compile a kernel on a machine without a GPU, and report registers, spills, access widths, PTX and
SASS.

A process whose Triton interprets cannot compile, so a confined process does it (``machine.py``).
The interpreter accepts some kernels that the compiler refuses; for these a CompileError has the
line and one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.compiler import helper
from course_lib.compiler.compile_job import Compiled, CompileJob, CompilerAnswer
from course_lib.compiler.kernel_source import Sources, collect, describe_argument, describe_constant
from course_lib.compiler.occupancy import multiprocessor


class CompileError(CourseError):
    """The compiler refuses the kernel, or crashes on it.

    ``cause`` is a stable identifier ("plain_global", "loop_carried_type", ..., "crash", "timeout",
    "other"). ``sentence`` says what is wrong; ``file``, ``line`` and ``column`` (both from 1) give
    the place, and ``quoted`` is the line itself.
    """

    def __init__(self, cause: str, sentence: str, file: str, line: int, column: int, quoted: str):
        self.cause = cause
        self.sentence = sentence
        self.file = file
        self.line = line
        self.column = column
        self.quoted = quoted
        words = _("{file}, line {line}: {sentence}.").format(
            file=file, line=line, sentence=sentence
        )
        super().__init__(f"{words}\n    {quoted}" if quoted else words)


@dataclass(frozen=True)
class CompileReport(Compiled):
    """The result of a compilation.

    ``registers`` are per thread. ``spill_bytes`` is the stack of a thread in local memory: 0 for a
    kernel that fits its registers. ``shared_bytes`` are per program. ``loads`` and ``stores`` count
    the instructions on global memory by the bytes that each moves per thread; a loop's body counts
    once. They and ``sass`` are None if ``disassemble`` was False. ``lines`` maps a line of the
    kernel's file to lines of PTX and SASS; inlined code (a ``tl.sum``, a jitted helper) belongs to
    the line that calls it. ``seconds`` is the time of the compilation.
    """

    kernel: str
    arch: str
    num_warps: int


def compile_report(
    kernel: Any,
    arguments: Mapping[str, object] | Sequence[object],
    constexprs: Mapping[str, object] | None = None,
    *,
    num_warps: int = 4,
    num_stages: int | None = None,
    maxnreg: int | None = None,
    arch: str = "sm_90",
    disassemble: bool = True,
    limit: float = 60.0,
) -> CompileReport:
    """Compile a kernel for ``arch``, as a launch with these arguments would.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        arguments: by name, or in the kernel's order: tensors, Pointer, int, float, bool, None. They
            are specialised as by the launcher: the compiler knows which addresses and integers are
            divisible by 16, 1 and None become constants, a large integer is an i64, a float an
            fp32.
        constexprs: the kernel's tl.constexpr arguments by name.
        num_stages: None for Triton's default.
        maxnreg: limit of registers per thread; None leaves it to the compiler.
        disassemble: False leaves out SASS, loads and stores, which saves most of the time for a
            small kernel.
        limit: processor seconds; a compiler that takes longer is stopped.

    Raises: CompileError if the compiler refuses the kernel, crashes on it, or takes too long;
    CourseError if the kernel has no source text or an option is impossible; EnvironmentFault if the
    process that compiles does not start, or Triton's ptxas cannot run here; TypeError for an
    argument of another type.
    """
    (report,) = compile_reports(
        kernel, [Specialisation(arguments, constexprs or {}, num_warps)], num_stages=num_stages,
        maxnreg=maxnreg, arch=arch,
        disassemble=disassemble, limit=limit,
    )  # fmt: skip
    return report


@dataclass(frozen=True)
class Specialisation:
    """The arguments and constants for which a kernel is compiled, as :func:`compile_report` takes
    them.

    ``kernel``: the name of the function to compile; "" for the source's own kernel.
    """

    arguments: Mapping[str, object] | Sequence[object]
    constexprs: Mapping[str, object]
    num_warps: int = 4
    kernel: str = ""


def compile_reports(
    kernel: Any,
    specialisations: Sequence[Specialisation],
    *,
    num_stages: int | None = None,
    maxnreg: int | None = None,
    arch: str = "sm_90",
    disassemble: bool = True,
    limit: float = 60.0,
) -> list[CompileReport]:
    """Compile a source for each specialisation, in one confined process. ``limit``: processor
    seconds per specialisation.

    Raises: the exceptions of :func:`compile_report`, for the first specialisation that is refused.
    """
    sources = collect(kernel)
    options = {"num_stages": num_stages, "maxnreg": maxnreg, "disassemble": disassemble}
    answers = _ask(
        sources,
        [_describe(sources, specialisation, arch, **options) for specialisation in specialisations],
        limit,
    )
    return [
        CompileReport(
            kernel=specialisation.kernel or sources.name,
            arch=arch,
            num_warps=specialisation.num_warps,
            **vars(answer.report),
        )
        for answer, specialisation in zip(answers, specialisations, strict=True)
    ]


def check_compiles(
    kernel: Any,
    specialisations: Sequence[Specialisation],
    *,
    arch: str = "sm_90",
    limit: float = 60.0,
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Check that a source compiles for each specialisation, without a report.

    A few specialisations that together have each parameter in each of its dtypes are compiled to
    machine code. The others are compiled only to Triton's own IR, which is much faster and is the
    stage at which the compiler refuses a kernel's text.

    Args:
        limit: processor seconds per specialisation.
        is_over: called several times per second. Once it returns True, the answer is no longer
            needed, and the compiler is ended as at its limit.

    Raises: the exceptions of :func:`compile_report`, for the first specialisation that is refused.
    """
    sources = collect(kernel)
    whole = _cover_dtypes(specialisations)
    described = [
        _describe(sources, specialisation, arch, through="cubin" if n in whole else "ttir")
        for n, specialisation in enumerate(specialisations)
    ]
    _ask(sources, described, limit, is_over)


def _cover_dtypes(specialisations: Sequence[Specialisation]) -> set[int]:
    """Choose specialisations, by number, that together show each pointer of each kernel in every
    dtype that it has."""
    chosen, dtypes_seen = set(), set()
    for n, specialisation in enumerate(specialisations):
        arguments = (
            specialisation.arguments
            if isinstance(specialisation.arguments, Mapping)
            else dict(enumerate(specialisation.arguments))
        )
        dtypes = {name: str(getattr(value, "dtype", "")) for name, value in arguments.items()}
        shows = {(specialisation.kernel, name, dtype) for name, dtype in dtypes.items() if dtype}
        if not shows <= dtypes_seen or not shows:
            chosen.add(n)
            dtypes_seen |= shows
    return chosen


def _describe(
    sources: Sources, specialisation: Specialisation, arch: str, **options: Any
) -> CompileJob:
    """Describe one specialisation for the process that compiles."""
    multiprocessor(arch)
    if specialisation.num_warps not in (1, 2, 4, 8, 16, 32):
        raise CourseError(
            f"num_warps is {specialisation.num_warps!r}; a program has 1, 2, 4, 8, 16 or 32 warps."
        )
    positional, named = (
        ([], specialisation.arguments)
        if isinstance(specialisation.arguments, Mapping)
        else (specialisation.arguments, {})
    )
    described = {name: describe_argument(value) for name, value in named.items()}
    described |= {
        name: describe_constant(value) for name, value in specialisation.constexprs.items()
    }
    return CompileJob(
        specialisation.kernel or sources.name, sources.units,
        [describe_argument(value) for value in positional], described, specialisation.num_warps,
        int(arch.removeprefix("sm_")), **options,
    )  # fmt: skip


def _ask(
    sources: Sources,
    described: list[CompileJob],
    limit: float,
    is_over: Callable[[], bool] | None = None,
) -> list[CompilerAnswer]:
    """Return one answer per description.

    Raises: CompileError for the first that is refused; EnvironmentFault if a program of Triton's is
    missing.
    """
    try:
        answers = helper.ask(described, limit, is_over)
    except helper.CompilerCrash as crash:
        raise _refusal(sources, crash.cause, str(crash), 0, sources.kernel_line, 0) from None
    if (refused := answers[-1].refusal) is not None:
        if refused.cause == "no_tool":
            raise EnvironmentFault(refused.sentence)
        unit = refused.unit if 0 <= refused.unit < len(sources.units) else 0
        raise _refusal(sources, refused.cause, refused.sentence, unit, refused.line, refused.column)
    return answers


def _refusal(
    sources: Sources, cause: str, sentence: str, unit: int, line: int, column: int
) -> CompileError:
    """Make the error for line ``line`` (from 1) and column ``column`` (from 0) of one of the
    kernel's texts."""
    texts = sources.units[unit]["text"].split("\n")
    at = line - sources.units[unit]["first_line"]
    quoted = texts[at].strip() if 0 <= at < len(texts) else ""
    return CompileError(
        cause, sentence, sources.files[unit], line, column + sources.indents[unit] + 1, quoted
    )
