"""Kernels in Triton."""

from __future__ import annotations

import ast

from course_lib.base import runtime
from course_lib.base.tab import IN_TAB
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.kind import Kind, Mode
from course_lib.grading.submission import kernel_check, needed, shortcuts
from course_lib.launching.faults import Raised
from course_lib.sandbox.isolation import Needs
from course_lib.sandbox.jobs import ResourceLimits

# In the first case the compiler starts other programs, and CUDA reserves more address space than
# any machine has memory.
_ON_A_GPU = ResourceLimits(
    start=120.0, case=60.0, load=300.0, total=600.0, patience=2.0, address_bytes=0,
    memory_bytes=0, resident_bytes=24 << 30, disk_bytes=1 << 30, files=20_000,
    open_files=4096, processes=64, threads=1024,
)  # fmt: skip


class KernelKind(Kind):
    """The learner writes kernels, and the course launches them: interpreted or compiled."""

    modes = (
        Mode(
            "cpu",
            N_("in the interpreter (CPU)"),
            "interpreted:Interpreter",
            asks_compiler=not IN_TAB,  # a browser tab has no compiler
        ),
        Mode(
            "gpu",
            N_("on the GPU"),
            "compiled:Gpu",
            "gpu",
            Needs.GPU,
            _ON_A_GPU,
            interpreted_by="cpu",
        ),
    )
    is_of_kernels = True
    step_imports = "import math\nimport triton\nimport triton.language as tl"

    def choose_mode(self, asked_mode: str | None) -> str:
        return asked_mode or runtime.current().mode

    def describe_needed_imports(self) -> str:
        return _(
            "A kernel needs only `import triton` and `import triton.language as tl`; remove the"
            " line."
        )

    def find_entry_points(
        self, tree: ast.Module, file: str, entry_points: tuple[str, ...]
    ) -> str | None:
        needed.require_kernels(tree, file, entry_points)
        return None

    def check_code(self, tree: ast.Module, text: str, forbidden: dict[str, str], file: str) -> None:
        kernel_check.check(tree, text, file)
        shortcuts.check_shortcuts(tree, shortcuts.Shortcuts(forbidden), file)

    def find_cause_of_exception(self, raised: Raised) -> str:
        from course_lib.grading.judging import diagnosis  # a confined process judges nothing

        return diagnosis.find_refusal_of_triton(raised) or "kernel_raised"


KIND = KernelKind()
