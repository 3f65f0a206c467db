"""What a kernel becomes on a GPU that is not there: registers, spills, access widths, PTX and SASS."""

from course_lib.compiler.report import (
    LIMITS,
    CompileError,
    CompileReport,
    KernelSource,
    Limits,
    Lines,
    Pointer,
    Residency,
    compile_report,
    described,
    occupancy,
    residency,
    source_text,
    units_of,
    warm,
)

__all__ = [
    "LIMITS", "CompileError", "CompileReport", "KernelSource", "Limits", "Lines", "Pointer", "Residency", "compile_report", "described",
    "occupancy", "residency", "source_text", "units_of", "warm",
]  # fmt: skip
