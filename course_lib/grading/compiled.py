"""Would a GPU's compiler take the kernel? Asked on machines that have none, because the interpreter runs what it refuses.

The compiler's helper process takes two seconds to start. So it is asked in a thread, while the child runs the cases.
"""

from __future__ import annotations

import threading

from course_lib.compiler import CompileError, KernelSource, Pointer, compile_report
from course_lib.errors import CourseError
from course_lib.grading.extract import Kernels
from course_lib.grading.plans import Plan

ARCH = "sm_90"
_OURS = ("crash", "timeout")  # the compiler's own failure, which says nothing about the kernel


class Compilation:
    """The question, asked in the background when this is made.

    A refusal can depend on whether a type changes on the way, so the first case in fp32 is compiled and the first in
    half precision; fp16 and bf16 are refused alike.
    """

    def __init__(self, kernels: Kernels, plans: list[Plan], file: str):
        self._refusal: CompileError | None = None
        self._unknown = ""
        first = {plan.case.dtype == "fp32": plan for plan in reversed(plans)}
        self._thread = threading.Thread(target=self._ask, args=(kernels, list(first.values())[::-1], file), daemon=True)
        self._thread.start()

    def _ask(self, kernels: Kernels, plans: list[Plan], file: str) -> None:
        for plan in plans:
            arguments = [Pointer(plan.tensor(value).dtype) if kind == "tensor" else value for kind, value in plan.arguments]
            try:
                compile_report(
                    KernelSource(kernels.source, plan.kernel, file), arguments, plan.constexprs,
                    num_warps=plan.num_warps, arch=ARCH, disassemble=False,
                )  # fmt: skip
            except CompileError as error:
                if error.cause in _OURS:
                    self._unknown = str(error)
                else:
                    self._refusal = error
                return
            except (CourseError, OSError) as error:
                self._unknown = str(error)
                return

    def answer(self) -> tuple[CompileError | None, str]:
        """Wait for it. The refusal, or None; and if it could not be asked, why not, in words."""
        self._thread.join()
        return self._refusal, self._unknown
