"""Check whether a GPU's compiler accepts the kernel, also without a GPU: the interpreter runs code
that the compiler refuses.

Only a kernel that passes needs the answer: for a wrong one another verdict is more useful. The
process that compiles takes time to start, so it is started while the cases run. It compiles while a
case is run a second time; if a person waits for the verdict, it compiles while the cases run, and
stops at the first wrong one.
"""

from __future__ import annotations

import ast
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

from course_lib import compiler
from course_lib.base import background
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import environment_fault
from course_lib.base.translation import gettext as _
from course_lib.compiler import (
    CompileError,
    CompileReport,
    KernelSource,
    Pointer,
    Specialisation,
    check_compiles,
    compile_reports,
)
from course_lib.grading.cases.plan import Plan
from course_lib.grading.submission.source import Kernels

ARCH = "sm_90"
_LIMIT = 20.0  # seconds; far more than a kernel of an exercise takes
_TRIES = 2
# accepted sources that are not compiled again: the same text gives the same machine code
_REMEMBERED = 64


class CompilerFailure(Exception):
    """The compiler crashed on the kernel or ran past its time limit in every try, so whether it
    accepts the kernel is unknown."""


class Compilation:
    """The compilation of one file's kernels. The constructor starts the process that compiles;
    :meth:`ask` gives it the kernels, and :meth:`stop` ends it if the answer is not needed."""

    def __init__(self, kernels: Kernels, plans: list[Plan], file: str):
        self._source, self._file = kernels.source, file
        # Modules that the course imports for a step: the step's cell need not import them.
        given = [
            line
            for line in ast.parse((kernels.rules or {}).get("given", "")).body
            if isinstance(line, ast.Import)
        ]
        self._modules = {
            alias.asname or alias.name: alias.name for line in given for alias in line.names
        }
        self._plans = _find_specialisations(plans)
        self._warmed = background.start(self._warm)
        self._is_stopped = threading.Event()
        self._answer: Future[CompileError | None] | None = None

    def ask(self) -> None:
        """Begin to compile the kernels for each specialisation that the cases use, unless the same
        text was accepted before, or this has begun. After :meth:`stop` it begins anew."""
        if self._answer is None or self._is_stopped.is_set():
            self._is_stopped = is_stopped = threading.Event()
            self._answer = background.start(lambda: self._compile(is_stopped.is_set))

    def stop(self) -> None:
        """End the compilation. Whoever needs its answer all the same asks again."""
        self._is_stopped.set()

    def find_refusal(self) -> CompileError | None:
        """Wait for the compiler. Returns the first refusal, or None.

        Raises: CompilerFailure; EnvironmentFault if there is no compiler to ask on this machine;
        OSError.
        """
        self.ask()
        assert self._answer is not None
        return self._answer.result()

    @staticmethod
    def _warm() -> None:
        try:
            compiler.warm()
        except (CourseError, OSError) as error:
            raise _describe_missing(error) from error

    def _compile(self, is_over: Callable[[], bool]) -> CompileError | None:
        asked = (self._source, tuple(repr(plan) for plan in self._plans))
        if asked in _accepted:
            return None
        self._warmed.result()
        source = KernelSource(
            self._source, self._plans[0].kernel, self._file, modules=self._modules
        )
        refusal = None
        for _try in range(_TRIES):
            if is_over():
                return None
            try:
                check_compiles(source, self._plans, arch=ARCH, limit=_LIMIT, is_over=is_over)
            except CompileError as error:
                if error.cause not in ("crash", "timeout"):
                    return error
                refusal = error
            except CourseError as error:
                raise _describe_missing(error) from error
            else:
                _accepted[asked] = None
                while len(_accepted) > _REMEMBERED:
                    _accepted.popitem(last=False)
                return None
        raise CompilerFailure(str(refusal))


_accepted: OrderedDict[tuple, None] = OrderedDict()


def start_report(
    kernels: Kernels, launch: Specialisation, file: str
) -> Future[CompileReport | None]:
    """Begin to compile a kernel for one launch, and return the coming report.

    It is None if the compiler refuses the kernel or this machine has no compiler. Neither decides
    anything here: :class:`Compilation` tells a pass of both.
    """

    def compile_once() -> CompileReport | None:
        source = KernelSource(kernels.source, launch.kernel, file)
        try:
            return compile_reports(source, [launch], arch=ARCH, limit=_LIMIT)[0]
        except (CourseError, OSError):
            return None

    return background.start(compile_once)


def _find_specialisations(plans: list[Plan]) -> list[Specialisation]:
    """Return the specialisations that the launches of the plans need, each once."""
    specialisations = {}
    for plan in plans:
        arguments = [
            Pointer(plan.tensor(v).dtype) if isinstance(v, str) else v for v in plan.arguments
        ]
        how = plan.constexprs, plan.num_warps, plan.entry_point
        # Triton's launcher specialises integers: 1 is a constant, a multiple of 16 is marked as
        # one, and a large one has 64 bits.
        kinds = [
            (v == 1, v % 16 == 0, abs(v) >= 2**31) if type(v) is int else repr(v) for v in arguments
        ]
        specialisations.setdefault(repr((kinds, *how)), Specialisation(arguments, *how))
    return list(specialisations.values())


def _describe_missing(error: CourseError | OSError) -> EnvironmentFault:
    fault = environment_fault(error) or error
    why = str(fault)
    words = _(
        "all cases are right in the interpreter, but a GPU's compiler could not be asked about the"
        " kernel, so it is no pass yet. {why}"
    )
    return EnvironmentFault(
        words.format(why=f"{why[:1].upper()}{why[1:]}"), getattr(fault, "printed", "")
    )
