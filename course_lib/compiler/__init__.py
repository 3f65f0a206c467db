"""Compile a kernel for a GPU that the machine need not have, and report registers, spills, access
widths, PTX and SASS."""

from course_lib.compiler.compile_job import Lines
from course_lib.compiler.helper import warm
from course_lib.compiler.kernel_source import (
    KernelSource,
    Pointer,
    describe_constant,
    describe_units,
    source_text,
)
from course_lib.compiler.occupancy import occupancy, residency
from course_lib.compiler.report import (
    CompileError,
    CompileReport,
    Specialisation,
    check_compiles,
    compile_report,
    compile_reports,
)

__all__ = [
    "CompileError", "CompileReport", "KernelSource", "Lines", "Pointer", "Specialisation",
    "check_compiles", "compile_report", "compile_reports", "describe_constant", "describe_units",
    "occupancy", "residency", "source_text", "warm",
]  # fmt: skip
