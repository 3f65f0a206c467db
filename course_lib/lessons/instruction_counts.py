"""Count the shuffles, additions, shared-memory accesses and barriers in a kernel's PTX, and the
loads in its machine code."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.compiler import Pointer, compile_report, source_text

_WORDS = {
    "shuffles": r"shfl\.sync\.bfly",
    "additions": r"add\.f32",
    "shared memory": r"(?:st|ld)\.shared",
    "barriers": r"bar\.sync",
}
# from a label to the jump back to it
_LOOP = re.compile(r"^(\$L__BB\w+):.*?bra(?:\.uni)?\s+\1;", re.DOTALL | re.MULTILINE)
_FLOP = {r"\b(?:add|sub|mul)\.f32": 1, r"\bfma\.rn\.f32": 2}


def count_instructions(
    kernel: Any, BLOCK: int, num_warps: int, N: int | None = None
) -> dict[str, int]:
    """Count how many shuffles, additions, shared-memory accesses and barriers each thread executes,
    by the names in _WORDS.

    The kernel is compiled for an H100, on any machine. Its parameters are pointers to fp32 whose
    names end in ``_ptr``, optionally N, and BLOCK. The instructions of a loop count N / BLOCK
    times.

    Raises: CourseError if N is given and the kernel has no loop; CompileError if it does not
    compile.
    """
    ptx = _compile(kernel, "fp32", BLOCK, num_warps, {} if N is None else {"N": N})
    counts = {name: len(re.findall(pattern, ptx)) for name, pattern in _WORDS.items()}
    if N is None:
        return counts
    if not (loop := _LOOP.search(ptx)):
        raise CourseError("the compiled kernel has no loop: leave N out.")
    inside = {name: len(re.findall(pattern, loop.group())) for name, pattern in _WORDS.items()}
    return {name: count + (N // BLOCK - 1) * inside[name] for name, count in counts.items()}


def count_flop_per_element(kernel: Any, BLOCK: int, num_warps: int) -> float:
    """Count the floating-point operations per element of a kernel ``(x_ptr, y_ptr, N, eps, BLOCK)``
    on an fp16 row of BLOCK columns.

    An fma counts as two operations.

    Raises: CompileError if the kernel does not compile.
    """
    ptx = _compile(kernel, "fp16", BLOCK, num_warps, {"N": BLOCK, "eps": 1e-5})
    in_thread = sum(flop * len(re.findall(pattern, ptx)) for pattern, flop in _FLOP.items())
    return in_thread * 32 * num_warps / BLOCK


def count_row_loads(kernel: Any, N: int, BLOCK: int, *, constant: bool = False) -> float:
    """Count how many times the compiled code of a kernel ``(x_ptr, y_ptr, N, BLOCK)`` has the load
    instructions that bring a block of fp32 numbers to 256 threads, on an H100.

    Args:
        constant: compile the kernel with ``N: tl.constexpr`` in its signature.

    Raises: CourseError if the signature has another N; CompileError if the kernel does not compile.
    """
    modules = {"triton": "triton", "tl": "triton.language"}
    source = source_text(kernel)
    source = replace(source, text="@triton.jit\n" + source.text, modules=modules)
    if constant:
        text, changed = re.subn(r"\bN, BLOCK", "N: tl.constexpr, BLOCK", source.text, count=1)
        if not changed:
            raise CourseError(f"{source.name} has no parameter N before BLOCK.")
        source = replace(source, text=text)
    numbers = {"N": N}
    report = compile_report(
        source,
        {name: Pointer("fp32") for name in ("x_ptr", "y_ptr")} | ({} if constant else numbers),
        {"BLOCK": BLOCK} | (numbers if constant else {}),
        num_warps=8,
    )
    assert report.loads is not None  # it is disassembled
    loaded = sum(width * count for width, count in report.loads.items())
    return loaded * 256 / (4 * BLOCK)


def _compile(kernel: Any, dtype: str, BLOCK: int, num_warps: int, numbers: dict[str, float]) -> str:
    arguments = {name: Pointer(dtype) for name in kernel.arg_names if name.endswith("_ptr")}
    return compile_report(
        kernel, arguments | numbers, {"BLOCK": BLOCK}, num_warps=num_warps, disassemble=False
    ).ptx
