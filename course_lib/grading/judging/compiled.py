"""Would a GPU's compiler take the kernel? Asked on machines that have none, because the interpreter runs what it refuses.

Only a kernel that passed is compiled: one that is wrong has something more useful to hear, and may be anything. The
compiler's helper process takes two seconds to start, so it is started in a thread while the child runs the cases.
"""

from __future__ import annotations

import threading

from course_lib import compiler
from course_lib.base.errors import CourseError
from course_lib.compiler import CompileError, KernelSource, Pointer, compile_report
from course_lib.grading.cases.plan import Plan
from course_lib.grading.submission.extract_kernels import Kernels

ARCH = "sm_90"
_OURS = ("crash", "timeout")  # the compiler's own failure, which says nothing about the kernel
_LIMIT = 20.0  # seconds; a kernel of an exercise takes 0.2


class Compilation:
    """The question about one file's kernels. Making it starts the compiler's helper."""

    def __init__(self, kernels: Kernels, plans: list[Plan], file: str):
        self._kernels, self._plans, self._file = kernels, plans, file
        self._failed = ""
        self._starting = threading.Thread(target=self._start, daemon=True)
        self._starting.start()

    def _start(self) -> None:
        try:
            compiler.warm()
        except (CourseError, OSError) as error:
            self._failed = str(error)

    def find_refusal(self) -> tuple[CompileError | None, str]:
        """Compile. The refusal, or None; and if the compiler could not be asked, why not, in words.

        A refusal can depend on whether a type changes on the way, so the first case in fp32 is compiled and the first in
        half precision; fp16 and bf16 are refused alike.
        """
        self._starting.join()
        if self._failed:
            return None, self._failed
        for plan in {plan.case.dtype == "fp32": plan for plan in reversed(self._plans)}.values():
            arguments = [
                Pointer(plan.tensor(value).dtype) if kind == "tensor" else value for kind, value in plan.arguments
            ]
            source = KernelSource(self._kernels.source, plan.entry_point, self._file)
            try:
                compile_report(
                    source,
                    arguments,
                    plan.constexprs,
                    num_warps=plan.num_warps,
                    arch=ARCH,
                    disassemble=False,
                    limit=_LIMIT,
                )
            except CompileError as error:
                return (None, str(error)) if error.cause in _OURS else (error, "")
            except (CourseError, OSError) as error:
                return None, str(error)
        return None, ""
